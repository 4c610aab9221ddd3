"""The worker's web app: the static files of `crowdveil.device`, byte-identical for everybody."""
