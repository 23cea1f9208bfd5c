"""Runs in a Python that has Vela: one call of it, and the CPU seconds of its scheduling as JSON.

    python benchmarks/vela_driver.py ARGUMENTS OF VELA

Scheduling is all that Vela decides, with the weights that it encodes to know their sizes; reading,
rewriting of the network, and command streams are not in it.
"""

import json
import sys
import time
from typing import Any

from ethosu.vela import compiler_driver, vela  # type: ignore[import-not-found]


def main() -> None:
    spent = {"schedule_cpu_s": 0.0}
    schedule = compiler_driver.scheduler.schedule_passes

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return schedule(*arguments)
        finally:
            spent["schedule_cpu_s"] += time.process_time() - start

    compiler_driver.scheduler.schedule_passes = timed
    try:
        code = vela.main(sys.argv[1:])
    finally:
        print(json.dumps(spent))
    sys.exit(code)


if __name__ == "__main__":
    main()
