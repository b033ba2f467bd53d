# Turns files into tables of bytes in C. tally_embed(OUT TABLE NAME@PATH...) writes the C file OUT, which defines
# `const struct embedded TABLE[]` and has the assembler read the files' bytes (.incbin): a compiler would take seconds to
# read megabytes as numbers. OUT includes TALLY_EMBED_HEADER for the struct, or gpu/embed.h where that is not set.
function(tally_embed out table)
  set(header gpu/embed.h)
  if(TALLY_EMBED_HEADER)
    set(header ${TALLY_EMBED_HEADER})
  endif()
  set(files "")
  set(entries "")
  set(paths "")
  set(number 0)
  foreach(file IN LISTS ARGN)
    string(REGEX MATCH "^([^@]*)@(.*)$" whole "${file}")
    set(symbol ${table}_${number})
    string(APPEND files "FILE(${symbol}, \"${CMAKE_MATCH_2}\")\n")
    string(APPEND entries "    {\"${CMAKE_MATCH_1}\", ${symbol}, ${symbol}_end},\n")
    list(APPEND paths ${CMAKE_MATCH_2})
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
/* Made by embed.cmake. */
#include "@header@"

/* The labels are of the assembler's file alone, which is why this one is not for an optimiser of whole programs. */
#define FILE(symbol, path)                                                                         \
    extern const unsigned char symbol[] __attribute__((visibility("hidden")));                     \
    extern const unsigned char symbol##_end[] __attribute__((visibility("hidden")));               \
    __asm__(".pushsection .rodata\n.balign 16\n" #symbol ":\n.incbin \"" path "\"\n" #symbol       \
            "_end:\n.byte 0\n.popsection");
@files@
const struct embedded @table@[] = {
@entries@    {0, 0, 0}};
]])
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${paths}" COMPILE_OPTIONS -fno-lto)
endfunction()
