// tests/optim/reference.hpp: the tables of reference/, and gradients set by hand.
#pragma once

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <sinter/sinter.hpp>

/// The rows of a file in reference/, by name.
inline std::map<std::string, std::vector<double>> table(const std::string& file) {
  std::map<std::string, std::vector<double>> rows;
  std::ifstream in(SINTER_REPOSITORY "/tests/optim/reference/" + file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name, field;
    std::getline(fields, name, ',');
    while (std::getline(fields, field, ',')) rows[name].push_back(std::stod(field));
  }
  return rows;
}

/// Gives v the gradient g.
template <class V, class G>
void set_gradient(const V& v, const G& g) {
  v.zero_grad();
  eval(v * 1).backward(g);
}
