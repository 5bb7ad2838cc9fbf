// SPDX-License-Identifier: MIT
// A plug-in whose static objects allocate when it is loaded and free when it is unloaded.
#include <map>
#include <string>

static std::map<int, std::string> table = [] {
	std::map<int, std::string> m;
	for (int i = 0; i < 200; i++)
		m[i] = std::string(static_cast<size_t>(i), 'x');
	return m;
}();

extern "C" size_t plugin_size()
{
	return table.size();
}
