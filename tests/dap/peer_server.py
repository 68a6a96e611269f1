# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server of somebody else's on a port, with the arrays of peer_arrays.

    peer_server.py pydap|xpublish|protocol PORT
"""
import http.server
import socketserver
import sys
import urllib.parse
import wsgiref.simple_server

import numpy as np
import peer_arrays as arrays


class Threaded(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads, request_queue_size = True, 64


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


def pydap(port):
    """Datasets `all` and `rows`."""
    from pydap.handlers.lib import BaseHandler
    from pydap.model import BaseType, DatasetType, GridType, SequenceType, StructureType

    dataset = DatasetType("all", attributes={"NC_GLOBAL": {"title": "of pydap", "n": 7}})
    dims = {name: BaseType(name, data, dims=(name,), units="m") for name, data in arrays.coordinates().items()}
    for name, each in dims.items():
        dataset[name] = each
    for name, data in arrays.grids().items():
        grid = GridType(name, long_name="a grid")
        grid[name] = BaseType(name, data, dims=tuple(dims))
        for dim, each in dims.items():
            grid[dim] = BaseType(dim, each.data, dims=(dim,))
        dataset[name] = grid
    for name, data in arrays.scalars().items():
        dataset[name] = BaseType(name, data)
    dataset["words"] = BaseType("words", np.array(arrays.WORDS, "S20"), dims=("w",))
    structure = StructureType("st")
    structure["n"] = BaseType("n", np.array(5, "i4"))
    structure["v"] = BaseType("v", np.arange(6, dtype="f4").reshape(2, 3), dims=("p", "q"))
    dataset["st"] = structure
    rows = DatasetType("rows")
    sequence = SequenceType("rows")
    for name, code in (("n", "i4"), ("v", "f8"), ("name", "S20")):
        sequence[name] = BaseType(name, np.array(0, code) if code != "S20" else np.array("", "S20"))
    sequence.data = np.array([(n, v, name.encode()) for n, v, name in arrays.rows()], dtype=[("n", "i4"), ("v", "f8"), ("name", "S20")])
    rows["rows"] = sequence
    handlers = {"all": BaseHandler(dataset), "rows": BaseHandler(rows)}

    def app(environ, start):
        name = environ["PATH_INFO"].strip("/").split(".")[0]
        if name in handlers:
            return handlers[name](environ, start)
        start("404 Not Found", [("Content-Type", "text/plain")])
        return [b"nothing here"]

    wsgiref.simple_server.make_server("127.0.0.1", port, app, Threaded, Quiet).serve_forever()


def protocol(port):
    """Dataset `all`."""
    import opendap_protocol as dap

    kinds = {np.dtype(code): getattr(dap, name) for code, name in (("u1", "Byte"), ("i2", "Int16"), ("u2", "UInt16"), ("i4", "Int32"), ("u4", "UInt32"), ("f4", "Float32"), ("f8", "Float64"))}
    dataset = dap.Dataset(name="all")
    dims = [dap.Array(name=name, data=data, dtype=dap.Float64) for name, data in arrays.coordinates().items()]
    for each in dims:
        each.append(dap.Attribute(name="units", value="m", dtype=dap.String))
    dataset.append(*dims)
    for name, data in arrays.grids().items():
        grid = dap.Grid(name=name, data=data, dtype=kinds[data.dtype], dimensions=dims)
        grid.append(dap.Attribute(name="long_name", value="a grid", dtype=dap.String))
        dataset.append(grid)
    dataset.append(dap.Attribute(name="title", value="of opendap-protocol", dtype=dap.String))

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            path, _, query = self.path.partition("?")
            kind = path.rpartition(".")[2]
            if kind not in ("dds", "das", "dods"):
                return self.send_error(404)
            pieces = list(getattr(dataset, kind)(constraint=urllib.parse.unquote(query)))
            body = b"".join(each if isinstance(each, bytes) else each.encode() for each in pieces)
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if kind == "dods" else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def xpublish(port):
    """Dataset `datasets/all/opendap`."""
    import uvicorn
    import xarray
    from xpublish import Rest
    from xpublish_opendap import OpenDapPlugin

    dims = tuple(arrays.SHAPE)
    made = xarray.Dataset({name: (dims, data, {"long_name": "a grid"}) for name, data in arrays.grids().items()},
                          {name: (name, data, {"units": "m"}) for name, data in arrays.coordinates().items()}, {"title": "of xpublish"})  # fmt: skip
    rest = Rest({"all": made}, plugins={"opendap": OpenDapPlugin()})
    uvicorn.run(rest.app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    {"pydap": pydap, "protocol": protocol, "xpublish": xpublish}[sys.argv[1]](int(sys.argv[2]))
