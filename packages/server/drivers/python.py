"""The Python interpreter of a sandboxer context. Standard library only, Python 3.8 or newer.

It reads cells as lines of JSON and answers with frames, also lines of JSON, on descriptors of its own, so that programs
may do with 0, 1 and 2 what they like. packages/server/src/manager/interpreter/frames.ts describes the frames; the
server trusts none of them.
"""
import sys

FOLDER_FIRST = sys.path[:1] == [""]
if FOLDER_FIRST:  # A file such as json.py in the working folder must not replace a module of ours.
    del sys.path[0]
import ast, base64, builtins, codecs, fcntl, functools, io, json, linecache, os, re, select, signal, threading
import traceback, types

if FOLDER_FIRST:
    sys.path.insert(0, "")

FRAME_CHARACTERS = 24 * 1024
READ_BYTES = 16 * 1024
BACKLOG_BYTES = 64 * 1024
PIPE_BYTES = 64 * 1024
FORMAT_CHARACTERS = 8 * 1024 * 1024
RESULT_CHARACTERS = 12 * 1024 * 1024
TEXT_CHARACTERS = 1024 * 1024
TABLE_ROWS = 1000
TABLE_COLUMNS = 200
CHART_POINTS = 10000
BOXES = "_sandboxer_boxes"
DRIVER = "<sandboxer>"
dumps, write, read, getpid = json.dumps, os.write, os.read, os.getpid


class State:
    """Whether a cell runs, and who may interrupt it."""

    running = False
    # Above zero while the main thread is in code of ours that must not end in the middle.
    guarded = 0
    interrupted = False
    in_child = False
    count = 0


def private(descriptor, mode):
    """A copy that programs inside do not inherit, out of the way of the numbers that they use."""
    try:
        copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
    except OSError:
        copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    return copy if mode is None else open(copy, mode, buffering=1 << 16)


class Channel:
    """The frames to the server."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.lock = threading.Lock()
        # Lines that are written with the next one: each write wakes the server.
        self.held = ""

    def send(self, frame, hold=False):
        """`hold`: another frame follows at once."""
        if State.in_child:
            return
        text = dumps(frame)
        with self.lock:
            if len(text) <= 2 * FRAME_CHARACTERS:
                if hold and len(self.held) <= FRAME_CHARACTERS:
                    self.held += text + "\n"
                    return
                # Whatever code of the cell has written here: its end is a line of its own.
                self._line("\n" + text if frame["f"] == "end" else text)
                return
            for start in range(0, len(text), FRAME_CHARACTERS):
                self._line(dumps({"f": "part", "d": text[start : start + FRAME_CHARACTERS]}))
            self._line('{"f": "whole"}')

    def _line(self, text):
        data = memoryview((self.held + text + "\n").encode("ascii"))
        self.held = ""
        try:
            while data:
                data = data[write(self.descriptor, data) :]
        except OSError:
            os._exit(70)


class Output:
    """What programs write to 1 and 2, which are pipes. Between cells it is kept, bounded, for the next one."""

    def __init__(self, channel):
        self.channel = channel
        self.lock = threading.Lock()
        self.streams = {}
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            reading, writing = os.pipe()
            os.dup2(writing, descriptor)
            os.close(writing)
            copy = private(reading, None)
            os.close(reading)
            os.set_blocking(copy, False)
            self.streams[copy] = (name, codecs.getincrementaldecoder("utf-8")("replace"))
        self.backlog = []
        self.poll = select.poll()
        for descriptor in self.streams:
            self.poll.register(descriptor, select.POLLIN)
        threading.Thread(target=self._pump, name="sandboxer output", daemon=True).start()

    def _pump(self):
        while True:
            ready = self.poll.poll()
            with self.lock:
                for descriptor, _ in ready:
                    self._take(descriptor)

    def _take(self, descriptor, hold=False):
        name, decoder = self.streams[descriptor]
        try:
            data = read(descriptor, READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            os._exit(70)
        text = decoder.decode(data)
        if State.running:
            self._frame(name, text, hold)
        else:
            self.backlog.append((name, text))
            while sum(len(kept) for _, kept in self.backlog) > BACKLOG_BYTES:
                self.backlog.pop(0)
        return len(data)

    def _frame(self, name, text, hold=False):
        if text:
            self.channel.send({"f": "out", "s": name, "d": text}, hold)

    def begin(self, start):
        with self.lock:
            State.running = True
            self.channel.send(start)
            kept, self.backlog = self.backlog, []
            for name, text in kept:
                self._frame(name, text)

    def drain(self):
        """Everything that was written before this call has become frames after it. The caller sends another one at once."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        with self.lock:
            for descriptor in self.streams:
                left = PIPE_BYTES
                while left > 0:
                    taken = self._take(descriptor, hold=True)
                    if taken == 0:
                        break
                    left -= taken

    def end(self):
        with self.lock:
            State.running = False


class Guard:
    """An interrupt in here comes at its end."""

    def __enter__(self):
        State.guarded += 1

    def __exit__(self, *_):
        State.guarded -= 1
        if State.guarded == 0 and State.interrupted and State.running:
            State.interrupted = False
            raise KeyboardInterrupt


def on_interrupt(_signal, _frame):
    if not State.running:
        return
    if State.guarded > 0:
        State.interrupted = True
    else:
        raise KeyboardInterrupt


MIME = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}
METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
BASE64 = {"png", "jpeg", "pdf"}


def is_figure(value):
    return type(value).__module__.startswith("matplotlib.") and hasattr(value, "savefig")


def own_bundle(value):
    """The formats that an object offers, by the convention of notebooks."""
    bundle = {"text/plain": repr(value)}
    if isinstance(value, type):
        return bundle
    whole = getattr(type(value), "_repr_mimebundle_", None)
    if whole is not None:
        answer = whole(value)
        bundle.update(answer[0] if isinstance(answer, tuple) else answer or {})
    for method, mime in METHODS.items():
        formatter = getattr(type(value), method, None)
        if formatter is not None and mime not in bundle:
            answer = formatter(value)
            answer = answer[0] if isinstance(answer, tuple) else answer
            if answer is not None:
                bundle[mime] = answer
    return bundle


class Formats:
    """IPython's formatters once IPython is imported: before that, nobody can have registered any with it."""

    ipython = None

    @classmethod
    def bundle(cls, value):
        if type(value).__module__ == "builtins":
            return {"text/plain": repr(value)}
        module = sys.modules.get("IPython.core.formatters")
        if cls.ipython is None and module is not None:
            cls.ipython = attempt(lambda: module.DisplayFormatter())
        bundle = None if cls.ipython is None else attempt(lambda: dict(cls.ipython.format(value)[0]))
        return bundle or own_bundle(value)


def plain(value):
    """A cell of a table, or a number of a chart, as JSON has them."""
    if value is None or isinstance(value, (bool, str)):
        return value if not isinstance(value, str) else value[:10000]
    if isinstance(value, int):
        return value if -(2**53) < value < 2**53 else str(value)
    if type(value).__name__ == "datetime64" and type(value).__module__ == "numpy":
        return str(value.astype("datetime64[us]"))
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        return plain(value.item())
    if isinstance(value, float):
        return value if value == value and value not in (float("inf"), float("-inf")) else None
    return str(value)[:10000]


def table_of(value):
    kind, module = type(value).__name__, type(value).__module__.split(".")[0]
    if kind != "DataFrame" or module not in ("pandas", "polars"):
        return None
    columns = [str(name)[:1000] for name in list(value.columns)[:TABLE_COLUMNS]]
    head = value.head(TABLE_ROWS)
    rows = head.itertuples(index=False, name=None) if module == "pandas" else head.iter_rows()
    rows = [[plain(cell) for cell in row[:TABLE_COLUMNS]] for row in rows]
    return {"columns": columns, "rows": rows, "row_count": len(value), "column_count": len(value.columns)}


def formats_of(bundle, more):
    formats, extra, omitted, size = {}, {}, [], 0
    for mime, data in bundle.items():
        name = MIME.get(mime)
        if isinstance(data, (bytes, bytearray)):
            data = base64.b64encode(data).decode("ascii")
        elif name == "json" or (name is None and not isinstance(data, str)):
            data = json.loads(dumps(data, default=str))
        elif not isinstance(data, str):
            data = str(data)
        if name == "text" and len(data) > TEXT_CHARACTERS:
            data = data[:TEXT_CHARACTERS] + "…"
        length = len(data) if isinstance(data, str) else len(dumps(data))
        if length > FORMAT_CHARACTERS or size + length > RESULT_CHARACTERS:
            omitted.append(name or mime)
            continue
        size += length
        if name is None:
            extra[mime] = data
        else:
            formats[name] = data.replace("\n", "") if name in BASE64 else data
    formats.update({name: data for name, data in more.items() if data is not None})
    if extra:
        formats["extra"] = extra
    if omitted:
        formats["omitted"] = omitted
    return formats


def attempt(work, *given):
    """Data that is good to have: a library of another version must not cost the result."""
    try:
        return work(*given)
    except Exception:
        return None


class Interpreter:
    def __init__(self, channel, output):
        self.channel = channel
        self.output = output
        self.loop = None
        self.module = types.ModuleType("__main__")
        self.module.__builtins__ = builtins
        self.names = self.module.__dict__
        self.names["display"] = self.display
        sys.modules["__main__"] = self.module

    # Results

    def publish(self, bundle, main=False, more={}):
        if State.in_child:
            print(bundle.get("text/plain", ""))
            return
        formats = formats_of(bundle, more)
        with Guard():
            self.output.drain()
            self.channel.send({"f": "result", "main": main, "formats": formats})

    def show(self, value, main=False):
        if is_figure(value):
            bundle, more = figure_bundle(value), {"chart": attempt(chart_of, value)}
            attempt(close_figure, value)
            return self.publish(bundle, main, more)
        self.publish(Formats.bundle(value), main, {"table": attempt(table_of, value)})

    def display(self, *values, **_options):
        """Shows values as results of the cell, in the richest formats that they have."""
        for value in values:
            self.show(value)

    def show_figures(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or State.in_child:
            return
        for number in list(pyplot.get_fignums()):
            self.show(pyplot.figure(number))

    # Cells

    def run(self, request):
        State.count += 1
        State.interrupted = False
        cell, code, count = request["id"], request["code"], State.count
        restore_streams()
        signal.signal(signal.SIGINT, on_interrupt)
        before = {name: os.environ.get(name) for name in request.get("env") or {}}
        os.environ.update(request.get("env") or {})
        status = "ok"
        try:
            try:
                with Guard():
                    self.output.begin({"f": "start", "id": cell, "n": count})
                self.execute(code, "<cell %d>" % count)
                self.show_figures()
            except BaseException as error:  # noqa: B036 — a cell may raise anything.
                State.guarded += 1
                if getpid() != PID:
                    leave_child(error)
                status = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
                self.output.drain()
                self.channel.send(failure(error))
            else:
                State.guarded += 1
        except KeyboardInterrupt:  # It came in the lines above.
            State.guarded += 1
            status = "interrupted"
            self.channel.send({"f": "error", "name": "KeyboardInterrupt", "value": "", "traceback": "KeyboardInterrupt"})
        if getpid() != PID:
            leave_child(None)
        self.output.drain()
        self.output.end()
        State.guarded = 0
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        self.channel.send({"f": "end", "id": cell, "n": count, "status": status})

    def execute(self, code, name):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            tree = ast.parse(code, name)
        except SyntaxError:
            rewritten = without_magics(code)
            if rewritten is None:
                remember_source(name, code)
                raise
            code = rewritten
            remember_source(name, code)
            tree = ast.parse(code, name)
        remember_source(name, code)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        compiled = [compile(tree, name, "exec", flags)] if tree.body else []
        final = None if last is None else compile(last, name, "eval", flags)
        for part in compiled:
            self.evaluate(part)
        if final is None:
            return
        value = self.evaluate(final)
        if value is not None:
            self.names["_"] = value
            self.show(value, main=True)

    def evaluate(self, code):
        answer = eval(code, self.names)
        if not code.co_flags & 0x80:  # CO_COROUTINE: it awaits at its top level.
            return answer
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(answer)


def remember_source(name, code):
    """For tracebacks, which mark the place correctly only in lines that end."""
    linecache.cache[name] = (len(code), None, [line + "\n" for line in code.split("\n")], name)


def without_magics(code):
    """Notebook lines that are no Python: `!command`, `%pip …`, `%cd …`; None if there are none."""
    lines, found = [], False
    for line in code.split("\n"):
        rest = line.lstrip()
        indent = line[: len(line) - len(rest)]
        if rest.startswith("!"):
            line = "%s__import__('subprocess').run(%r, shell=True) and None" % (indent, rest[1:].strip())
        elif rest.startswith(("%pip ", "%conda ")):
            command = rest[1:] if rest.startswith("%conda") else '"%s" -m %s' % (sys.executable, rest[1:])
            line = "%s__import__('subprocess').run(%r, shell=True) and None" % (indent, command)
        elif rest.startswith("%cd "):
            line = "%s__import__('os').chdir(%r)" % (indent, rest[4:].strip())
        elif rest.startswith(("%matplotlib", "%config", "%load_ext", "%autoreload")):
            line = indent + "pass"
        else:
            lines.append(line)
            continue
        found = True
        lines.append(line)
    return "\n".join(lines) if found else None


def failure(error):
    name = type(error).__name__
    value = attempt(str, error)
    value = "<the text of this error cannot be shown>" if value is None else value
    trace = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
        trace = trace.tb_next
    lines = attempt(formatted, error, trace)
    text = "".join(lines or ["%s: %s\n" % (name, value)])
    return {"f": "error", "name": name[:200], "value": shortened(value, 10000), "traceback": shortened(text, 100000)}


def formatted(error, trace):
    """Without frames of ours."""
    whole = traceback.TracebackException(type(error), error, trace)
    left = [whole]
    while left:
        part = left.pop()
        part.stack[:] = [frame for frame in part.stack if frame.filename != DRIVER]
        left += [linked for linked in (part.__cause__, part.__context__) if linked is not None]
    return list(whole.format())


def shortened(text, limit):
    return text if len(text) <= limit else text[: limit // 2] + "\n…\n" + text[-limit // 2 :]


def leave_child(error):
    """A child that a cell forked has come to the end of the cell: it is no interpreter."""
    code = 0
    try:
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        elif error is not None:
            traceback.print_exception(type(error), error, error.__traceback__)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 255)


def after_fork():
    State.in_child = True
    for descriptor in (OUTGOING, INCOMING.fileno()):
        try:
            os.close(descriptor)
        except OSError:
            pass


def restore_streams():
    """A cell may have closed them."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name, None)
        if stream is None or getattr(stream, "closed", False):
            setattr(sys, name, text_stream(descriptor))


def text_stream(descriptor):
    raw = open(descriptor, "wb", buffering=8192, closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


# Charts


def figure_bundle(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return {"text/plain": repr(figure), "image/png": picture.getvalue()}


def close_figure(figure):
    sys.modules["matplotlib.pyplot"].close(figure)


def chart_of(figure):
    charts = [chart for chart in map(axes_chart, figure.axes) if chart is not None]
    if len(charts) == 1:
        return charts[0]
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    return {"type": "superchart", "title": title, "elements": charts} if charts else None


def axes_chart(axes):
    """The data of one plot, in the form that E2B's clients read too: they need every field of a type."""
    chart = {"title": axes.get_title(), "x_label": axes.get_xlabel(), "y_label": axes.get_ylabel()}
    chart.update(x_unit=unit_of(chart["x_label"]), y_unit=unit_of(chart["y_label"]))
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    if wedges:
        labels = [text.get_text() for text in axes.texts]
        elements = [
            {"label": labels[i] if i < len(labels) else "", "angle": abs(w.theta2 - w.theta1), "radius": plain(w.r)}
            for i, w in enumerate(wedges)
        ]
        return {"type": "pie", "title": axes.get_title(), "elements": elements}
    bars = [bar for bar in axes.containers if type(bar).__name__ == "BarContainer"]
    if bars:
        groups = [bar_elements(axes, group, number) for number, group in enumerate(bars)]
        return dict(chart, type="bar", elements=[element for group in groups for element in group])
    boxes = getattr(axes, BOXES, None)
    if boxes:
        return dict(chart, type="box_and_whisker", elements=[box for group in boxes for box in group])
    left = [CHART_POINTS]
    lines = [
        points_element(left, named(line.get_label(), "Line", number), line.get_xdata(), line.get_ydata())
        for number, line in enumerate(axes.get_lines())
    ]
    kind = "line"
    if not lines:
        kind = "scatter"
        offsets = [(dots.get_label(), dots.get_offsets()) for dots in axes.collections if hasattr(dots, "get_offsets")]
        lines = [
            points_element(left, named(label, "Points", number), dots[:, 0], dots[:, 1])
            for number, (label, dots) in enumerate(offsets)
        ]
    if not lines:
        return None
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        ticks, labels = axis.get_ticklocs(), [label.get_text() for label in axis.get_ticklabels()]
        chart[letter + "_scale"] = scale_of(axis)
        chart[letter + "_ticks"] = [moment(tick) if has_dates(axis) else plain(tick) for tick in ticks]
        chart[letter + "_tick_labels"] = labels
    return dict(chart, type=kind, elements=lines)


def unit_of(label):
    """`s` of `Time (s)` and of `Time [s]`."""
    found = re.search(r"\s\((.+?)\)|\[(.+?)\]", label)
    return found and (found.group(1) or found.group(2))


def named(label, kind, number):
    """Names that begin with `_` are matplotlib's own."""
    return "%s %d" % (kind, number) if str(label).startswith("_") else str(label)


# Their numbers are days, as matplotlib counts them.
DATES = {"_SwitchableDateConverter", "DateConverter", "ConciseDateConverter", "DatetimeConverter"}


def converter_of(axis):
    get = getattr(axis, "get_converter", None)  # Since matplotlib 3.10.
    return type(get() if get else axis.converter).__name__


def has_dates(axis):
    return converter_of(axis) in DATES


def scale_of(axis):
    if has_dates(axis):
        return "datetime"
    return "categorical" if converter_of(axis) == "StrCategoryConverter" else axis.get_scale()


def moment(tick):
    return sys.modules["matplotlib.dates"].num2date(tick).isoformat()


def bar_elements(axes, group, number):
    lying = getattr(group, "orientation", None) == "horizontal"
    axis = axes.yaxis if lying else axes.xaxis
    names, ticks = [label.get_text() for label in axis.get_ticklabels()], list(axis.get_ticklocs())
    for bar in list(group)[:CHART_POINTS]:
        middle = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
        near = min(range(len(ticks)), key=lambda i: abs(ticks[i] - middle)) if ticks else None
        label = names[near] if near is not None and near < len(names) and names[near] else str(plain(middle))
        value = plain(bar.get_width() if lying else bar.get_height())
        yield {"label": label, "group": named(group.get_label(), "Group", number), "value": value}


def points_element(left, label, xs, ys):
    points = [[plain(x), plain(y)] for x, y in list(zip(xs, ys))[: left[0]]]
    left[0] -= len(points)
    return {"label": label, "points": points}


def remember_boxes(axes, boxes):
    """The lines of a box plot do not tell what they are, so its numbers are kept when it is drawn."""
    kept = [
        {
            "label": str(box.get("label", number + 1)),
            "min": plain(box["whislo"]),
            "first_quartile": plain(box["q1"]),
            "median": plain(box["med"]),
            "third_quartile": plain(box["q3"]),
            "max": plain(box["whishi"]),
            "outliers": [plain(flier) for flier in list(box.get("fliers", []))[:CHART_POINTS]],
        }
        for number, box in enumerate(boxes[:CHART_POINTS])
    ]
    setattr(axes, BOXES, getattr(axes, BOXES, []) + [kept])


# Libraries that show things


class AfterImport:
    """Changes a module right after it was imported."""

    def __init__(self, patches):
        self.patches = patches

    def find_spec(self, name, path=None, target=None):
        patch = self.patches.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            attempt(patch, module)

        spec.loader.exec_module = exec_module
        return spec


def patches_for(interpreter):
    def publish_display_data(data, metadata=None, **_options):
        interpreter.publish(dict(data))

    def display(*values, raw=False, **_options):
        for value in values:
            interpreter.publish(dict(value)) if raw else interpreter.show(value)

    def show_with(module):
        if hasattr(module, "display"):
            module.display = display
        if hasattr(module, "publish_display_data"):
            module.publish_display_data = publish_display_data

    # A function: matplotlib sets attributes of it, which a method does not have.
    def show(*_given, **_options):
        interpreter.show_figures()

    def pyplot(module):
        module.show = show

    def axes(module):
        draw = module.Axes.bxp

        @functools.wraps(draw)
        def bxp(self, bxpstats, *given, **options):
            attempt(remember_boxes, self, bxpstats)
            return draw(self, bxpstats, *given, **options)

        module.Axes.bxp = bxp

    names = ("IPython.core.display_functions", "IPython.core.display", "IPython.display")
    return dict({name: show_with for name in names}, **{"matplotlib.pyplot": pyplot, "matplotlib.axes._axes": axes})


def main():
    global PID, OUTGOING, INCOMING
    PID = getpid()
    INCOMING = private(0, "rb")
    OUTGOING = private(1, None)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.signal(signal.SIGINT, on_interrupt)
    channel = Channel(OUTGOING)
    output = Output(channel)
    sys.stdin = open(0, closefd=False)
    sys.stdout, sys.stderr = text_stream(1), text_stream(2)
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "agg")
    os.register_at_fork(after_in_child=after_fork)
    interpreter = Interpreter(channel, output)
    sys.meta_path.insert(0, AfterImport(patches_for(interpreter)))
    channel.send({"f": "ready", "version": "Python " + sys.version.split()[0]})
    for line in INCOMING:
        interpreter.run(json.loads(line))
        if FOLDER_FIRST and "" not in sys.path:
            sys.path.insert(0, "")
    os._exit(0)


main()
