# Files to tables of bytes in C. tally_embed(OUT TABLE NAME@PATH...) has the build make the C file OUT
# (an output of the current folder) that defines `const struct embedded TABLE[]`. TALLY_EMBED_HEADER is the
# header that it includes for the struct; gpu/embed.h where it is not set.
# As a script (cmake -DHEADER= -DTABLE= -DOUTPUT= -DFILES= -P embed.cmake) this file writes OUT.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(tally_embed out table)
    list(TRANSFORM ARGN REPLACE "^[^@]*@" "" OUTPUT_VARIABLE paths)
    set(header gpu/embed.h)
    if(TALLY_EMBED_HEADER)
      set(header ${TALLY_EMBED_HEADER})
    endif()
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DHEADER=${header} -DTABLE=${table} -DOUTPUT=${out} "-DFILES=${ARGN}" -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
      DEPENDS ${paths} ${CMAKE_CURRENT_FUNCTION_LIST_FILE} COMMENT "" VERBATIM)
  endfunction()
  return()
endif()

set(arrays "")
set(entries "")
set(number 0)
foreach(file IN LISTS FILES)
  string(REGEX MATCH "^([^@]*)@(.*)$" whole "${file}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} bytes HEX)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "/* ${name} */\nstatic const _Alignas(16) unsigned char file_${number}[] = {\n    ${bytes}0};\n")
  string(APPEND entries "    {\"${name}\", file_${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made by embed.cmake. */
#include \"${HEADER}\"

${arrays}
const struct embedded ${TABLE}[] = {
${entries}    {0, 0, 0}};
")
