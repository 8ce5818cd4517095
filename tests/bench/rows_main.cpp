// tests/bench/rows_main.cpp: serves the rows that another file makes, to inference.py and shapes.py. Usage: program
// FILE
#include "rows.hpp"

std::vector<row> make_rows(const char* file);

int main(int, char** argv) { return serve(make_rows(argv[1])); }
