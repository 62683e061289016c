"""Owns the code between a call from Python and a kernel, as LLVM assembly.

A wrapper checks and unpacks its arguments, releases the interpreter's lock, calls the kernel by numba's
calling convention and packs the result.  Kernels that make arrays get their memory from functions of numba's
runtime; here these use malloc, so that a process does not need numba.
"""

from __future__ import annotations

import numpy as np

from dlog.jit.image import (
    BYTE_ORDER,
    CONTIGUOUS_ALIGNED,
    DATA,
    DESCRIPTION,
    DIMENSIONS,
    FLAGS,
    SHAPE,
    TYPE,
    TYPE_NUMBER,
)

ELEMENT = {"Words": np.int64, "Floats": np.float64, "Bytes": np.uint8, "Bools": np.bool_}
LLVM_TYPES = {"int": ["i64"], "float": ["double"]} | {
    # numba's array: owner, parent, number and size of its elements, the elements, shape and stride
    kind: ["ptr", "ptr", "i64", "i64", "ptr", "i64", "i64"]
    for kind in ELEMENT
}
RESULT = {
    "int64": ("i64", "%result = call ptr @PyLong_FromLongLong(i64 %value)"),
    "float64": ("double", "%result = call ptr @PyFloat_FromDouble(double %value)"),
    "bool": ("i8", "%wide = zext i8 %value to i64\n  %result = call ptr @PyBool_FromLong(i64 %wide)"),
    "none": ("ptr", "%result = call ptr @Py_BuildValue(ptr @dlog.empty)"),
}

# numba's runtime, as far as arrays of numbers need it.  An array's owner is its count, a destructor and its
# argument (none), the elements, their size; the elements follow it in the same block.
RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)

define linkonce_odr ptr @NRT_Allocate(i64 %size) {
  %block = call ptr @malloc(i64 %size)
  ret ptr %block
}
define linkonce_odr void @NRT_Free(ptr %block) {
  call void @free(ptr %block)
  ret void
}
define linkonce_odr void @NRT_MemInfo_call_dtor(ptr %owner) {
  call void @free(ptr %owner)
  ret void
}
define linkonce_odr ptr @NRT_MemInfo_alloc(i64 %size) {
  %owner = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %owner
}
define linkonce_odr ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %room = add i64 %wide, 64
  %total = add i64 %size, %room
  %fits = icmp ugt i64 %total, %size
  br i1 %fits, label %take, label %none
take:
  %owner = call ptr @malloc(i64 %total)
  %failed = icmp eq ptr %owner, null
  br i1 %failed, label %none, label %fill
fill:
  %address = ptrtoint ptr %owner to i64
  %past = add i64 %address, 63
  %up = add i64 %past, %wide
  %mask = sub i64 0, %wide
  %aligned = and i64 %up, %mask
  %data = inttoptr i64 %aligned to ptr
  store i64 1, ptr %owner
  %f1 = getelementptr i8, ptr %owner, i64 8
  store ptr null, ptr %f1
  %f2 = getelementptr i8, ptr %owner, i64 16
  store ptr null, ptr %f2
  %f3 = getelementptr i8, ptr %owner, i64 24
  store ptr %data, ptr %f3
  %f4 = getelementptr i8, ptr %owner, i64 32
  store i64 %size, ptr %f4
  %f5 = getelementptr i8, ptr %owner, i64 40
  store ptr null, ptr %f5
  ret ptr %owner
none:
  ret ptr null
}
"""

COMMON = f"""
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @Py_BuildValue(ptr, ...)
@PyExc_TypeError = external global ptr
@PyExc_RuntimeError = external global ptr
@dlog.empty = internal constant [1 x i8] zeroinitializer

; Whether an object is a contiguous array of one dimension whose elements have one of two type numbers.
define internal i1 @dlog.is_array(ptr %type, ptr %object, i32 %number, i32 %other) alwaysinline {{
  %type_at = getelementptr i8, ptr %object, i64 {TYPE}
  %its_type = load ptr, ptr %type_at
  %same = icmp eq ptr %its_type, %type
  br i1 %same, label %array, label %sub
sub:
  %is_sub = call i32 @PyType_IsSubtype(ptr %its_type, ptr %type)
  %sub_ok = icmp ne i32 %is_sub, 0
  br i1 %sub_ok, label %array, label %no
array:
  %dimensions_at = getelementptr i8, ptr %object, i64 {DIMENSIONS}
  %dimensions = load i32, ptr %dimensions_at
  %one = icmp eq i32 %dimensions, 1
  %flags_at = getelementptr i8, ptr %object, i64 {FLAGS}
  %flags = load i32, ptr %flags_at
  %both = and i32 %flags, {CONTIGUOUS_ALIGNED}
  %dense = icmp eq i32 %both, {CONTIGUOUS_ALIGNED}
  %description_at = getelementptr i8, ptr %object, i64 {DESCRIPTION}
  %description = load ptr, ptr %description_at
  %number_at = getelementptr i8, ptr %description, i64 {TYPE_NUMBER}
  %its_number = load i32, ptr %number_at
  %is_number = icmp eq i32 %its_number, %number
  %is_other = icmp eq i32 %its_number, %other
  %fits = or i1 %is_number, %is_other
  %order_at = getelementptr i8, ptr %description, i64 {BYTE_ORDER}
  %order = load i8, ptr %order_at
  %is_native = icmp eq i8 %order, {ord("=")}
  %is_single = icmp eq i8 %order, {ord("|")}
  %ordered = or i1 %is_native, %is_single
  %a = and i1 %one, %dense
  %b = and i1 %fits, %ordered
  %yes = and i1 %a, %b
  ret i1 %yes
no:
  ret i1 false
}}
"""


def native_type(kinds: list[str]) -> str:
    """The parameters of a kernel by numba's calling convention: result, exception, then the arguments."""
    return ", ".join(["ptr", "ptr", *(part for kind in kinds for part in LLVM_TYPES[kind])])


def wrapper(name: str, native: str, kinds: list[str], result: str) -> str:
    """The text of the function `name` for Python, around the function `native`."""
    values: list[str] = []
    lines = []
    for i, kind in enumerate(kinds):
        text, parts = _argument(i, kind, f"a{i + 1}" if i + 1 < len(kinds) else "ready")
        lines.append(text)
        values += parts
    kind, pack = RESULT[result]
    arguments = ", ".join(["ptr %out", "ptr %exception_at", *values])
    messages = {"types": f"{name}({', '.join(kinds)}): wrong arguments", "failed": f"{name} failed"}
    constants = "".join(
        f'@"{name}.{key}" = internal constant [{len(text) + 1} x i8] c"{text}\\00"\n'
        for key, text in messages.items()
    )
    return f"""
declare i32 @"{native}"({native_type(kinds)})
{constants}
define ptr @"{name}"(ptr %array_type, ptr %arguments, i64 %count) {{
  %out = alloca {kind}
  %exception_at = alloca ptr
  store ptr null, ptr %exception_at
  %right = icmp eq i64 %count, {len(kinds)}
  br i1 %right, label %{"a0" if kinds else "ready"}, label %wrong
{"".join(lines)}
ready:
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 @"{native}"({arguments})
  call void @PyEval_RestoreThread(ptr %thread)
  %is_value = icmp eq i32 %status, 0
  %is_none = icmp eq i32 %status, -2
  %good = or i1 %is_value, %is_none
  br i1 %good, label %done, label %failed
done:
  %value = load {kind}, ptr %out
  {pack}
  ret ptr %result
wrong:
  %type_error = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type_error, ptr @"{name}.types")
  ret ptr null
failed:
  %runtime_error = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %runtime_error, ptr @"{name}.failed")
  ret ptr null
raised:
  ret ptr null
}}
"""


def _argument(i: int, kind: str, following: str) -> tuple[str, list[str]]:
    """Blocks that unpack argument i and continue at `following`, and the values they produce."""
    fetch = f"""
a{i}:
  %p{i} = getelementptr ptr, ptr %arguments, i64 {i}
  %o{i} = load ptr, ptr %p{i}"""
    if kind in ELEMENT:
        return fetch + _array(i, kind, following), [
            "ptr null",
            "ptr null",
            f"i64 %n{i}",
            f"i64 {np.dtype(ELEMENT[kind]).itemsize}",
            f"ptr %d{i}",
            f"i64 %n{i}",
            f"i64 {np.dtype(ELEMENT[kind]).itemsize}",
        ]
    llvm_type = LLVM_TYPES[kind][0]
    convert, test = {
        "int": ("PyLong_AsLongLong", f"icmp eq i64 %v{i}, -1"),
        "float": ("PyFloat_AsDouble", f"fcmp oeq double %v{i}, -1.0"),
    }[kind]
    text = f"""
  %v{i} = call {llvm_type} @{convert}(ptr %o{i})
  %m{i} = {test}
  br i1 %m{i}, label %c{i}, label %{following}
c{i}:
  %e{i} = call ptr @PyErr_Occurred()
  %b{i} = icmp eq ptr %e{i}, null
  br i1 %b{i}, label %{following}, label %raised"""
    return fetch + text, [f"{llvm_type} %v{i}"]


def _array(i: int, kind: str, following: str) -> str:
    # long and long long are the same on most machines, but have different type numbers.
    dtype = np.dtype(ELEMENT[kind])
    twin = np.dtype(np.longlong) if dtype.kind == "i" else dtype
    return f"""
  %y{i} = call i1 @dlog.is_array(ptr %array_type, ptr %o{i}, i32 {dtype.num}, i32 {twin.num})
  br i1 %y{i}, label %x{i}, label %wrong
x{i}:
  %da{i} = getelementptr i8, ptr %o{i}, i64 {DATA}
  %d{i} = load ptr, ptr %da{i}
  %sa{i} = getelementptr i8, ptr %o{i}, i64 {SHAPE}
  %s{i} = load ptr, ptr %sa{i}
  %n{i} = load i64, ptr %s{i}
  br label %{following}"""
