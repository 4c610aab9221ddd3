"""httpx without certificates: reading them takes forty times longer than a request over plain http on loopback."""

from __future__ import annotations

from functools import partial

import httpx

get, post, put = partial(httpx.get, verify=False), partial(httpx.post, verify=False), partial(httpx.put, verify=False)
request = partial(httpx.request, verify=False)
Client = partial(httpx.Client, verify=False)
