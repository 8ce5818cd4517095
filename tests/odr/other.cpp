// tests/odr/other.cpp: the second translation unit.
#include SINTER_ODR_HEADER

int other() { return 7; }
