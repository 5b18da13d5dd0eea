# What every target of the project shares: includes from the root, warnings, hardening, sanitizers.

function(memoirfs_target target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -Wold-style-cast -Woverloaded-virtual -Wimplicit-fallthrough
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    # False with g++-12 when it optimises: a moved std::optional, and a literal put before a std::string.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>
    $<$<BOOL:${MEMOIRFS_WERROR}>:-Werror>
    -fstack-protector-strong -fno-omit-frame-pointer
    $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fstack-clash-protection>)
  target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(MEMOIRFS_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${MEMOIRFS_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${MEMOIRFS_SANITIZE})
  endif()
  if(MEMOIRFS_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PRIVATE --coverage)
  endif()
endfunction()

function(memoirfs_library target)
  memoirfs_target(${target})
endfunction()
