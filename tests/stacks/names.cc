/* SPDX-License-Identifier: GPL-2.0-only
 * Templates and inlined functions, for their names alone. */
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

int main()
{
	std::map<std::string, std::vector<int>> lengths;
	std::regex wanted("a(b|c)*d");
	std::string line;

	while (std::getline(std::cin, line))
		if (std::regex_search(line, wanted))
			lengths[line].push_back(static_cast<int>(line.size()));
	for (auto &[text, v] : lengths) {
		std::sort(v.begin(), v.end());
		std::cout << text << v.size();
	}
}
