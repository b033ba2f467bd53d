# The programs that the production kernels and the ladder make for CUDA: a kernel file, and the defines in alphabetical order, as
# the table of src/gpu/capability.c makes them. This file makes two lists of "FILE DEFINE...". The programs of TALLY_CUDA_IMAGES are
# compiled into the library, so that a first call of the usual operators waits for no compiler. Those of TALLY_CUDA_OTHERS are
# compiled by NVRTC at run time; the target cuda_compile_all tests that they can be compiled.
#
# Measured on one core of an Intel Xeon beside other work: all images take 225 s to compile, of which parts.cu takes 20 s, words.cu
# 10 s and the programs of rows.cu 91 s. For sm_90 alone they take 90 s, as three architectures need two runs of nvcc's front end and
# three of ptxas. They have 10.4 MB. A program takes 1 to 10 s, so programs that few callers need are left to run time and to the
# disk cache.
set(TALLY_CUDA_IMAGES)
set(TALLY_CUDA_OTHERS)

# tally_cuda_programs(FILE "DEFINE..." [IN TYPE...] [ALSO TYPE...]): adds the programs of one file with these defines, for the types
# behind IN to TALLY_CUDA_IMAGES, for those behind ALSO to TALLY_CUDA_OTHERS.
function(tally_cuda_programs file defines)
  cmake_parse_arguments(for "" "" "IN;ALSO" ${ARGN})
  foreach(type IN LISTS for_IN)
    list(APPEND TALLY_CUDA_IMAGES "${file} ${defines} TYPE_${type}")
  endforeach()
  foreach(type IN LISTS for_ALSO)
    list(APPEND TALLY_CUDA_OTHERS "${file} ${defines} TYPE_${type}")
  endforeach()
  set(TALLY_CUDA_IMAGES ${TALLY_CUDA_IMAGES} PARENT_SCOPE)
  set(TALLY_CUDA_OTHERS ${TALLY_CUDA_OTHERS} PARENT_SCOPE)
endfunction()

# Programs for all types and operators.
list(APPEND TALLY_CUDA_IMAGES filled.cu lower.cu parts.cu shared_terms.cu sort.cu terms.cu words.cu)
list(APPEND TALLY_CUDA_OTHERS read.cu)

# Whole arrays. The usual types are bf16, f32, f64 and i32.
tally_cuda_programs(sum.cu "OP_SUM" IN F16 BF16 F32 F64)
tally_cuda_programs(sum.cu "LIFT_SQUARE OP_SUM" IN BF16 F32 F64 ALSO F16)
tally_cuda_programs(sum.cu "IN_FLOATS LIFT_SQUARE OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(sum.cu "LIFT_PRODUCT OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(sum.cu "LIFT_MAGNITUDE OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(moments.cu "OP_SUM" IN BF16 F32 ALSO F16)
tally_cuda_programs(double_moments.cu "OP_SUM" IN F64)
tally_cuda_programs(fast_sum.cu "OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(tree.cu "OP_PROD" ALSO F16 BF16 F32 F64)
tally_cuda_programs(integer_sum.cu "OP_SUM" IN I32 I64 ALSO I8 I16 U8 U16 U32 U64)
tally_cuda_programs(integer_sum.cu "LIFT_SQUARE OP_SUM" IN I32 ALSO I8 I16 I64 U8 U16 U32 U64)
tally_cuda_programs(integer_sum.cu "LIFT_PRODUCT OP_SUM" ALSO I8 I16 I32 I64 U8 U16 U32 U64)
tally_cuda_programs(integer_sum.cu "LIFT_MAGNITUDE OP_SUM" ALSO I8 I16 I32 I64)
tally_cuda_programs(integer_product.cu "OP_PROD" ALSO I8 I16 I32 I64 U8 U16 U32 U64)
tally_cuda_programs(integer_moments.cu "OP_SUM" IN I32 ALSO I8 I16 I64 U8 U16 U32 U64)
tally_cuda_programs(order.cu "OP_MIN" IN BF16 F32 F64 I32 ALSO F16 I8 I16 I64 U8 U16 U32 U64)
tally_cuda_programs(order.cu "INDEXED OP_MIN" IN BF16 F32 F64 I32 ALSO F16 I8 I16 I64 U8 U16 U32 U64)
tally_cuda_programs(nonzero.cu "OP_OR" ALSO F16 BF16 F32 F64 U8 U16 U32 U64)
foreach(op AND OR XOR)
  tally_cuda_programs(bits.cu "OP_${op}" ALSO U8 U16 U32 U64)
endforeach()

# Rows, and columns.
tally_cuda_programs(rows.cu "OP_SUM" IN BF16 F32 F64 I32 ALSO F16 I16 I64 U16 U32 U64)
tally_cuda_programs(rows.cu "LIFT_SQUARE OP_SUM" IN BF16 F32 F64 ALSO F16)
tally_cuda_programs(rows.cu "LIFT_MOMENTS OP_SUM" IN BF16 F32 F64 ALSO F16)
tally_cuda_programs(rows.cu "LIFT_MAGNITUDE OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(rows.cu "IN_FLOATS OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(rows.cu "IN_FLOATS LIFT_SQUARE OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(rows.cu "IN_FLOATS LIFT_MAGNITUDE OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(rows.cu "FAST OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(rows.cu "OP_MIN" IN BF16 F32 F64 I32 ALSO F16 I16 I64 U16 U32 U64)
tally_cuda_programs(rows.cu "INDEXED OP_MAX" IN BF16 F32 F64 I32 ALSO F16 I16 I64 U16 U32 U64)
tally_cuda_programs(rows.cu "INDEXED OP_MIN" ALSO F16 BF16 F32 F64 I16 I32 I64 U16 U32 U64)
tally_cuda_programs(columns.cu "FOLD_SUM OP_SUM" IN BF16 F32 F64 I32 ALSO F16 I8 I16 I64 U8 U16 U32 U64)
tally_cuda_programs(columns.cu "FOLD_SQUARES NEAR OP_SUM" IN BF16 F32 ALSO F16)
tally_cuda_programs(columns.cu "FOLD_SQUARES OP_SUM" IN F64 ALSO F32)
tally_cuda_programs(columns.cu "FOLD_SUM IN_FLOATS OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(columns.cu "FOLD_SQUARES IN_FLOATS OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(columns.cu "FOLD_MOMENTS OP_SUM" IN BF16 F32 F64 ALSO F16)
tally_cuda_programs(columns.cu "FOLD_FAST OP_SUM" ALSO F16 BF16 F32 F64)
tally_cuda_programs(columns.cu "FOLD_END OP_MIN" IN BF16 F32 F64 U32 ALSO F16 U8 U16 U64) # of integers only the size matters
tally_cuda_programs(columns.cu "FOLD_END INDEXED OP_MIN" IN BF16 F32 F64 U32 ALSO F16 U8 U16 U64)
tally_cuda_programs(columns.cu "FOLD_ENDS OP_MIN" ALSO F16 BF16 F32 F64 U8 U16 U32 U64)

# Vectors, by segment or by id.
tally_cuda_programs(vectors.cu "FOLD_SUM OP_SUM" ALSO F16 BF16 F32 F64 I8 I16 I32 I64 U8 U16 U32 U64)
tally_cuda_programs(vectors.cu "FOLD_SUM IN_FLOATS OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(vectors.cu "FOLD_SQUARES NEAR OP_SUM" ALSO F16 BF16 F32)
tally_cuda_programs(vectors.cu "FOLD_SQUARES OP_SUM" ALSO F32 F64)
tally_cuda_programs(vectors.cu "FOLD_SQUARES IN_FLOATS OP_SUM" ALSO F16 BF16 F32)
foreach(fold "FOLD_MOMENTS" "FOLD_FAST")
  tally_cuda_programs(vectors.cu "${fold} OP_SUM" ALSO F16 BF16 F32 F64)
endforeach()
foreach(fold "FOLD_END" "FOLD_ENDS" "FOLD_END INDEXED")
  tally_cuda_programs(vectors.cu "${fold} OP_MIN" ALSO F16 BF16 F32 F64 U8 U16 U32 U64)
endforeach()

# Groups whose ids come in any order.
tally_cuda_programs(groups.cu "OP_SUM" ALSO F16 BF16 F32 F64 I8 I16 I32 I64 U8 U16 U32 U64)
foreach(fold "FOLD_END" "FOLD_ENDS" "FOLD_COUNT" "FOLD_END INDEXED")
  tally_cuda_programs(group_ends.cu "${fold} OP_MIN" ALSO F16 BF16 F32 F64 U8 U16 U32 U64)
endforeach()

# Filled copies and rows that lie apart: a type of each size, and each kind.
tally_cuda_programs(rows.cu "LOOSE OP_SUM" ALSO F32 F64 I32)
tally_cuda_programs(rows.cu "LIFT_MOMENTS LOOSE OP_SUM" ALSO F32)
tally_cuda_programs(rows.cu "LIFT_SQUARE LOOSE OP_SUM" ALSO F64)
tally_cuda_programs(rows.cu "INDEXED LOOSE OP_MAX" ALSO BF16)
tally_cuda_programs(columns.cu "FOLD_SUM LOOSE OP_SUM" ALSO BF16 F32 I64)
tally_cuda_programs(columns.cu "FOLD_MOMENTS LOOSE OP_SUM" ALSO F32 F64)
tally_cuda_programs(columns.cu "FOLD_END INDEXED LOOSE OP_MIN" ALSO U16)

# The ladder: sums of each type, and each operator on types of each kind and of the least and the greatest size.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../base/table.h table)
string(REGEX MATCHALL "X\\([A-Z0-9]+, [a-z0-9]+, [A-Z]+, [0-9]+\\)" types "${table}")
string(REGEX MATCHALL "X\\([A-Z0-9]+, [a-z0-9]+, [A-Z]+\\)" ops "${table}")
list(TRANSFORM types REPLACE "X\\(([A-Z0-9]+),.*" "\\1")
list(TRANSFORM ops REPLACE "X\\(([A-Z0-9]+),.*" "\\1")
list(REMOVE_ITEM types F32 F64 I32)
tally_cuda_programs(ladder/ladder.cu "OP_SUM" IN F32 F64 I32 ALSO ${types})
list(REMOVE_ITEM ops SUM)
foreach(op IN LISTS ops)
  tally_cuda_programs(ladder/ladder.cu "OP_${op}" ALSO BF16 F32 I64 U8)
endforeach()
