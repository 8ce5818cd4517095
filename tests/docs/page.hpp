// tests/docs/page.hpp: the text of a page of docs/, for tests of what it quotes.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

inline std::string page(const std::string& name) {
  std::ifstream file(SINTER_REPOSITORY "/docs/" + name);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}
