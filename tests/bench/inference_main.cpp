// tests/bench/inference_main.cpp: serves the rows of inference.cpp to inference.py. Usage: inference WEIGHTS
#include "rows.hpp"

std::vector<row> make_rows(const char* weights_file);

int main(int, char** argv) { return serve(make_rows(argv[1])); }
