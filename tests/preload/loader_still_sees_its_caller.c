/* SPDX-License-Identifier: MIT */
/*
 * H21 and the table of names on libc's handle (H92): dlopen and dlsym are interposed, and what
 * they do depends on who calls. From a library opened RTLD_LOCAL, RTLD_DEFAULT finds the
 * library's own names, RTLD_NEXT what comes after it, dlopen its own folder by $ORIGIN; a failed
 * dlsym still has its dlerror, a wrong handle its error. Failure: NULL where libc has an answer.
 */
#include "claim.h"

#include <sys/stat.h>

int main(void)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command),
		 "mkdir -p sub && cp %s sub/ && cp %s sub/libtm_only_there.so",
		 claim_beside("libdlsym_caller.so"), claim_beside("libdeep_plugin.so"));
	claim(system(command) == 0, "%s", command);
	void *h = dlopen("./sub/libdlsym_caller.so", RTLD_NOW | RTLD_LOCAL);
	claim(h, "dlopen: %s", dlerror());
	if (!h)
		return 1;
	void *(*by_default)(const char *), *(*by_next)(const char *),
		*(*open_there)(const char *, int);
	void *found[] = {dlsym(h, "caller_default"), dlsym(h, "caller_next"),
			 dlsym(h, "caller_open")};
	memcpy(&by_default, &found[0], sizeof(found[0]));
	memcpy(&by_next, &found[1], sizeof(found[1]));
	memcpy(&open_there, &found[2], sizeof(found[2]));

	void *own = dlsym(h, "caller_only_here");
	claim(own && by_default("caller_only_here") == own, "RTLD_DEFAULT from a local library");
	claim(!dlsym(RTLD_DEFAULT, "caller_only_here"), "a local name leaked");
	const char *said = dlerror();
	claim(said && strstr(said, "caller_only_here"), "dlerror: %s", said ? said : "NULL");
	claim(!by_next("caller_only_here"), "RTLD_NEXT found the caller itself");
	claim(by_next("strlen") && by_default("free"), "RTLD_NEXT from a local library");
	claim(!dlsym(h, "no_such_name") && dlerror(), "no error for a missing name");
	claim(!dlerror(), "dlerror stays");
	claim(!dlvsym(RTLD_DEFAULT, "malloc", "NO_SUCH_9"), "dlvsym of a missing version");

	for (int i = 0; i < 2; i++) {
		int flags = RTLD_NOW | RTLD_LOCAL | (i ? RTLD_DEEPBIND : 0);
		void *there = open_there("libtm_only_there.so", flags);
		claim(there, "$ORIGIN of the caller is lost: %s", dlerror());
		if (there)
			claim(dlsym(there, "plugin_free") && dlclose(there) == 0, "dlclose");
	}
	claim(!dlopen("./no-such-file.so", RTLD_NOW) && strstr(dlerror(), "no-such-file"),
	      "dlerror");
	return claim_end();
}
