// tests/bench/models_main.cpp: serves the step of models.cpp to models.py. Usage: models THREADS
#include <cstdlib>

#include "rows.hpp"

std::function<void()> make_step(int threads);

int main(int argc, char** argv) { return serve({{"sinter", 1, 0, make_step(argc > 1 ? std::atoi(argv[1]) : 1)}}); }
