#include <frazil.hpp>
#include <iostream>

int main() {
    frazil::snowflake ids{"standard store=memory"};
    std::cout << "frazil " << frazil_version() << " makes " << ids.next() << "\n";
}
