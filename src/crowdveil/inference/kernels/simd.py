"""Whole rows of a small table as one vector: what the compiler would not find by itself in a loop over options."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1


@intrinsic(prefer_literal=True)
def add_row(typing: Any, target: Any, offset: Any, source: Any, origin: Any, width: Any) -> Any:
    """target[place] += source[origin] for C-ordered tables of `width` columns; the target may be the wider type."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sum_type, part_type = (signature.args[index].dtype for index in (0, 2))
        sum_lanes, part_lanes = (
            ir.VectorType(context.get_data_type(each), width.literal_value) for each in (sum_type, part_type)
        )
        sums, parts = (_row(context, builder, signature, args, index, width.literal_value) for index in (0, 2))
        sums = builder.bitcast(sums, sum_lanes.as_pointer())
        parts = builder.bitcast(parts, part_lanes.as_pointer())
        # A row starts wherever the last one ended, so no more than the alignment of one number is promised.
        part = builder.load(parts, align=part_type.bitwidth // 8)
        if sum_type.bitwidth > part_type.bitwidth:
            part = builder.fpext(part, sum_lanes)
        total = builder.fadd(builder.load(sums, align=sum_type.bitwidth // 8), part)
        builder.store(total, sums, align=sum_type.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, width), code


@intrinsic(prefer_literal=True)
def fetch_row(typing: Any, source: Any, origin: Any, width: Any) -> Any:
    """Ask for source[origin] so that it is in the cache by the time it is read; a place out of reach does no harm."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        row = builder.bitcast(_row(context, builder, signature, args, 0, width.literal_value), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(prefetch, [row, *(ir.Constant(number, flag) for flag in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(source, types.intp, width), code


def _row(context: Any, builder: Any, signature: Any, args: Any, index: int, width: int) -> Any:
    """The address of a row: the table is argument `index`, the row's number the next one."""
    table = context.make_array(signature.args[index])(context, builder, args[index])
    return builder.gep(table.data, [builder.mul(args[index + 1], ir.Constant(args[index + 1].type, width))])
