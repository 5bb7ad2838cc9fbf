# SPDX-License-Identifier: MIT
# Files for DIR/share/tiermalloc (JSON schema, example rules, dashboard): dist_tmshare_DATA.
dist_tmshare_DATA += %reldir%/example.rules

dist_tmshare_DATA += %reldir%/grafana-dashboard.json
# Where bash-completion and others look, under the command's own name.
bashcompletiondir = $(datadir)/bash-completion/completions
EXTRA_DIST += %reldir%/tiermalloc.bash-completion
install-data-local:
	$(MKDIR_P) $(DESTDIR)$(bashcompletiondir)
	$(INSTALL_DATA) $(srcdir)/%reldir%/tiermalloc.bash-completion $(DESTDIR)$(bashcompletiondir)/tiermalloc
uninstall-local:
	rm -f $(DESTDIR)$(bashcompletiondir)/tiermalloc
