/* Objects of dataclasses and named tuples, made without a call of Python code: see __init__.py.
 *
 * A class calls `make` instead of its __new__ and __init__. Whatever is unusual, wrong arguments
 * too, goes the ordinary way, so that errors are Python's own.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define MOST_FIELDS 32
#define MOST_CLASSES 256 /* A power of two, and more than there will ever be. */

typedef struct {
    PyTypeObject *type;
    PyObject *names;    /* A tuple of interned strings. */
    PyObject *defaults; /* Of the last fields: of each, its value or a function that makes it. */
    PyObject *is_made;  /* Of the last fields, whether their default is such a function. */
    PyObject *check;    /* __post_init__, or NULL. */
    Py_ssize_t n_fields;
    Py_ssize_t n_positional;
    Py_ssize_t offsets[MOST_FIELDS]; /* Of slots; -1 for what lies in the object's dictionary. */
} Layout;

static Layout layouts[MOST_CLASSES];
static int n_layouts;

static Layout *layout_of(PyTypeObject *type)
{
    size_t at = ((size_t)type >> 4) % MOST_CLASSES;
    while (layouts[at].type && layouts[at].type != type) at = (at + 1) % MOST_CLASSES;
    return &layouts[at];
}

static PyObject *make_ordinarily(PyObject *type, PyObject *const *args, Py_ssize_t n_args,
                                 PyObject *names)
{
    PyObject *made = NULL, *named = PyDict_New(), *unnamed = PyTuple_New(n_args);
    int good = named && unnamed;
    for (Py_ssize_t i = 0; good && i < n_args; i++)
        PyTuple_SET_ITEM(unnamed, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; good && names && i < PyTuple_GET_SIZE(names); i++)
        good = PyDict_SetItem(named, PyTuple_GET_ITEM(names, i), args[n_args + i]) == 0;
    if (good) made = PyType_Type.tp_call(type, unnamed, named);
    Py_XDECREF(named);
    Py_XDECREF(unnamed);
    return made;
}

/* Put all arguments where their fields are; whether every field has a value, or one is made. */
static int sorted_out(const Layout *layout, PyObject *const *args, Py_ssize_t n_args,
                      PyObject *names, PyObject **values)
{
    Py_ssize_t n = layout->n_fields, n_defaults = PyTuple_GET_SIZE(layout->defaults);
    if (n_args > layout->n_positional) return 0;
    memset(values, 0, (size_t)n * sizeof(PyObject *));
    for (Py_ssize_t i = 0; i < n_args; i++) values[i] = args[i];
    Py_ssize_t at = n_args;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++, at++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        /* They mostly come in the order of the fields. */
        Py_ssize_t steps = 0;
        for (; steps < n; steps++, at++) {
            if (at >= n) at = 0;
            if (PyTuple_GET_ITEM(layout->names, at) == name) break;
        }
        if (steps == n || values[at]) return 0;
        values[at] = args[n_args + i];
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (values[i]) continue;
        Py_ssize_t number = i - (n - n_defaults);
        if (number < 0) return 0;
        if (PyTuple_GET_ITEM(layout->is_made, number) == Py_False)
            values[i] = PyTuple_GET_ITEM(layout->defaults, number);
    }
    return 1;
}

static int fill(const Layout *layout, PyObject *made, PyObject **values)
{
    Py_ssize_t n = layout->n_fields, n_defaults = PyTuple_GET_SIZE(layout->defaults);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = values[i];
        if (value)
            Py_INCREF(value);
        else
            value = PyObject_CallNoArgs(PyTuple_GET_ITEM(layout->defaults, i - (n - n_defaults)));
        if (!value) return 0;
        if (layout->offsets[i] >= 0) {
            *(PyObject **)((char *)made + layout->offsets[i]) = value;
            continue;
        }
        int failed = PyObject_GenericSetAttr(made, PyTuple_GET_ITEM(layout->names, i), value) < 0;
        Py_DECREF(value);
        if (failed) return 0;
    }
    if (!layout->check) return 1;
    PyObject *answer = PyObject_CallOneArg(layout->check, made);
    Py_XDECREF(answer);
    return answer != NULL;
}

static PyObject *make(PyObject *callable, PyObject *const *args, size_t n_and_flag, PyObject *names)
{
    PyTypeObject *type = (PyTypeObject *)callable;
    Py_ssize_t n_args = PyVectorcall_NARGS(n_and_flag);
    const Layout *layout = layout_of(type);
    PyObject *values[MOST_FIELDS];
    if (!sorted_out(layout, args, n_args, names, values))
        return make_ordinarily(callable, args, n_args, names);
    if (PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS)) {
        PyObject *tuple = type->tp_alloc(type, layout->n_fields);
        for (Py_ssize_t i = 0; tuple && i < layout->n_fields; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
        return tuple;
    }
    PyObject *made = type->tp_alloc(type, 0);
    if (made && !fill(layout, made, values)) Py_CLEAR(made);
    return made;
}

/* Where the slots of a class lie. */
static void find_slots(Layout *layout)
{
    for (Py_ssize_t i = 0; i < layout->n_fields; i++) {
        PyObject *name = PyTuple_GET_ITEM(layout->names, i);
        PyObject *slot = PyDict_GetItem(layout->type->tp_dict, name);
        int is_slot = slot && Py_IS_TYPE(slot, &PyMemberDescr_Type);
        layout->offsets[i] = is_slot ? ((PyMemberDescrObject *)slot)->d_member->offset : -1;
    }
}

static PyObject *make_quickly(PyObject *self, PyObject *args)
{
    PyTypeObject *type;
    PyObject *names, *defaults, *is_made;
    Py_ssize_t n_positional;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!O!n", &PyType_Type, &type, &PyTuple_Type, &names,
                          &PyTuple_Type, &defaults, &PyTuple_Type, &is_made, &n_positional))
        return NULL;
    if (PyTuple_GET_SIZE(defaults) != PyTuple_GET_SIZE(is_made)) {
        PyErr_SetString(PyExc_ValueError, "of every default it must be said whether it is made");
        return NULL;
    }
    if (PyTuple_GET_SIZE(names) > MOST_FIELDS || 2 * n_layouts >= MOST_CLASSES) Py_RETURN_NONE;
    Layout *layout = layout_of(type);
    n_layouts += !layout->type;
    layout->type = (PyTypeObject *)Py_NewRef(type);
    layout->names = Py_NewRef(names);
    layout->defaults = Py_NewRef(defaults);
    layout->is_made = Py_NewRef(is_made);
    layout->check = PyObject_GetAttrString((PyObject *)type, "__post_init__");
    PyErr_Clear();
    layout->n_fields = PyTuple_GET_SIZE(names);
    layout->n_positional = n_positional;
    find_slots(layout);
    type->tp_vectorcall = make;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"make_quickly", make_quickly, METH_VARARGS, "Let a class make its objects without Python."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_made", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__made(void) { return PyModule_Create(&module); }
