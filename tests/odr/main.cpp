// tests/odr/main.cpp: one of two translation units; the other may be compiled with other flags.
#include SINTER_ODR_HEADER

int other();

int main() { return other() - 7; }
