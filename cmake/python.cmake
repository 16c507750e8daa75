# The Python package: the extension module over the public header (python/src), for the limited API of CPython 3.9, so
# one file works for every later version; and the component "python" of an installation, which is the content of a wheel:
#
#   cmake --install build --component python --prefix DIR     puts DIR/fullrank/ in place
#
# FULLRANK_PYTHON: ON, OFF, or AUTO (if Python's headers are found).
if(NOT FULLRANK_PYTHON STREQUAL "AUTO")
  set(needed REQUIRED)
endif()
find_package(Python3 3.9 QUIET ${needed} COMPONENTS Interpreter Development.Module)
if(NOT Python3_Development.Module_FOUND)
  message(STATUS "no headers of Python (Debian: python3-dev): the extension module is left out")
  return()
endif()

file(GLOB files CONFIGURE_DEPENDS python/src/*.c)
add_library(python MODULE ${files})
set_target_properties(python PROPERTIES OUTPUT_NAME _fullrank PREFIX "" SUFFIX .abi3.so
  INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
target_include_directories(python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(python PRIVATE fullrank ${CMAKE_DL_LIBS})
if(SKBUILD) # wheels have no symbolic links: the library is one file, under the name it is loaded by
  set_target_properties(fullrank PROPERTIES VERSION 0)
endif()

install(TARGETS python fullrank LIBRARY DESTINATION fullrank COMPONENT python NAMELINK_SKIP EXCLUDE_FROM_ALL)
if(NOT SKBUILD)
  install(DIRECTORY python/fullrank/ DESTINATION fullrank COMPONENT python EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed PATTERN __pycache__ EXCLUDE)
endif()
