"""docs/other-languages.md: its programs in several processes, over a real frazil-server and the built C library. No ID repeats, none is rounded."""

import getpass
import glob
import os
import re
import shutil
import socket
import struct
import subprocess
import textwrap
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import frazil
import pytest
from replica import ROOT, TIMEOUT_S, Replica
from servers import process

PAGE = (ROOT / "docs/other-languages.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# The first line of a block, or the second line of PHP's, names its file.
FILES = {}
for _, code in BLOCKS:
    if named := re.match(r"(?:<\?php\n)?// (\S+\.\w+)", code):
        FILES[named[1]] = code
FILES["frazil.h"] = next(code for language, code in BLOCKS if language == "text")
PHP_INI, POOL = (code for language, code in BLOCKS if language == "ini")
LIB = ROOT / "build/c/lib"
JAVA = "/usr/share/java"
PROCESSES = 4
STANDARD = frazil.Layout("standard")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Replica(tmp_path_factory.mktemp("languages"), "orders=standard node=1") as replica:
        yield replica
        assert replica.end() == 0


def write(folder, *names, **replaced):
    """Writes files of the page into a folder. Each of `replaced` occurs in one of them."""
    for name in names:
        code = FILES[name]
        for old, new in replaced.items():
            code = code.replace(old, new)
        (folder / os.path.basename(name)).write_text(code)


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=4 * TIMEOUT_S, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_at_once(command, **options):
    """Runs a program in several processes at once. Returns the IDs that each prints."""
    with ThreadPoolExecutor(PROCESSES) as pool:
        running = [pool.submit(run, command, **options) for _ in range(PROCESSES)]
        return [list(map(int, each.result().split())) for each in running]


def check_ids(processes, total=100_000):
    """Checks that processes together have at least `total` IDs, that none repeats, and that none was rounded to a double."""
    ids = [id for each in processes for id in each]
    assert len(ids) >= total and len(set(ids)) == len(ids)
    assert all(2**53 < id < 2**63 for id in ids)
    # Rounded IDs would all be multiples of 16 or more.
    assert sum(id % 16 != 0 for id in ids) > len(ids) / 2
    return ids


# Java


SPRING = ("spring3-core", "spring3-beans", "spring3-context", "spring3-expression", "spring3-aop", "commons-logging")
THREADS = """
import java.util.concurrent.*;
public class Threads {
    interface Mint { long next() throws Exception; }
    static void print(int each, Mint mint) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        var lists = new java.util.ArrayList<Future<long[]>>();
        for (int thread = 0; thread < 4; thread++) lists.add(pool.submit(() -> {
            var ids = new long[each];
            for (int nth = 0; nth < each; nth++) ids[nth] = mint.next();
            return ids;
        }));
        pool.shutdown();
        var out = new StringBuilder();
        for (var list : lists) for (long id : list.get()) out.append(id).append('\\n');
        System.out.print(out);
    }
}
"""
PLAIN = """
public class Main {
    public static void main(String[] arguments) throws Exception {
        Threads.print(6_500, new FrazilIds(arguments[0], "orders")::next);
    }
}
"""
IN_SPRING = """
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
public class Main {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("frazil.url", arguments[0]);
        var context = new AnnotationConfigApplicationContext(FrazilBeans.class);
        Threads.print(1_000, context.getBean(FrazilIds.class)::next);
        if (context.getBean(FrazilIds.class) != context.getBean(FrazilIds.class)) System.exit(3);
    }
}
"""
IN_MYBATIS = """
import com.baomidou.mybatisplus.core.*;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import com.baomidou.mybatisplus.core.toolkit.GlobalConfigUtils;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
public class Main {
    public interface Orders extends BaseMapper<Order> {}
    public static void main(String[] arguments) throws Exception {
        System.setProperty("frazil.url", arguments[0]);
        var context = new AnnotationConfigApplicationContext(FrazilBeans.class, FrazilIdentifierGenerator.class);
        var database = new org.h2.jdbcx.JdbcDataSource();
        database.setURL("jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1");
        try (var connection = database.getConnection(); var statement = connection.createStatement()) {
            statement.execute("create table orders (id bigint primary key, item varchar(20))");
        }
        var configuration = new MybatisConfiguration(new Environment("test", new JdbcTransactionFactory(), database));
        GlobalConfigUtils.getGlobalConfig(configuration).setIdentifierGenerator(context.getBean(FrazilIdentifierGenerator.class));
        configuration.addMapper(Orders.class);
        var sessions = new MybatisSqlSessionFactoryBuilder().build(configuration);
        var json = new ObjectMapper();
        try (var shared = sessions.openSession(true)) {
            Threads.print(1_000, () -> {
                var order = new Order();
                order.setItem("lamp");
                try (var session = sessions.openSession(true)) {
                    session.getMapper(Orders.class).insert(order);
                }
                var text = json.writeValueAsString(order);
                if (!text.contains("\\"id\\":\\"" + order.getId() + "\\"")) throw new IllegalStateException(text);
                return json.readValue(text, Order.class).getId();
            });
            var rows = shared.getMapper(Orders.class).selectList(null);
            if (rows.size() != 4_000) throw new IllegalStateException("rows: " + rows.size());
        }
    }
}
"""


POM = """
<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>test</artifactId><version>1</version><dependencies>
<dependency><groupId>com.baomidou</groupId><artifactId>mybatis-plus-core</artifactId><version>3.5.9</version></dependency>
<dependency><groupId>org.springframework</groupId><artifactId>spring-context</artifactId><version>5.3.39</version></dependency>
<dependency><groupId>com.fasterxml.jackson.core</groupId><artifactId>jackson-databind</artifactId><version>2.17.2</version></dependency>
<dependency><groupId>me.ahoo.cosid</groupId><artifactId>cosid-core</artifactId><version>3.2.1</version></dependency>
<dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.3.232</version></dependency>
</dependencies></project>
"""


def from_maven(folder):
    """Returns the jars that Maven downloads. Skips the test if its repository does not answer."""
    lib = ROOT / "build/java"
    if not lib.exists():
        if not shutil.which("mvn"):
            pytest.fail("mvn is missing, which downloads Spring and MyBatis-Plus: Debian's package maven")
        (folder / "pom.xml").write_text(POM)
        made = lib.with_name(f"java-{os.getpid()}")
        copy = ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", f"-DoutputDirectory={made}"]
        done = subprocess.run(copy, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Maven downloads nothing: {done.stdout[-300:]}")
        try:
            made.rename(lib)
        except OSError:
            # Another process of the tests was faster.
            shutil.rmtree(made)
    return sorted(lib.glob("*.jar"))


def spring(folder):
    """Returns the jars of Spring: those of Debian's libspring-context-java, or else Maven's."""
    paths = [f"{JAVA}/{name}.jar" for name in SPRING]
    return paths if all(map(os.path.exists, paths)) else from_maven(folder)


def run_java(folder, server, main, names, classpath=()):
    # The machine of the tests may be busy.
    write(folder, *names, **{"ofSeconds(2)": "ofSeconds(60)"})
    (folder / "Main.java").write_text(main)
    (folder / "Threads.java").write_text(THREADS)
    path = ":".join([*map(str, classpath), str(folder)])
    run(["javac", "-nowarn", "-cp", path, "-d", folder, *folder.glob("*.java")])
    return run_at_once(["java", "-XX:TieredStopAtLevel=1", "-cp", path, "Main", f"http://127.0.0.1:{server.ports['http']}"])


def check_between(processes, server, before, total):
    """Checks IDs of the server: they are between one that it issued before and one after, and have its node number."""
    ids = check_ids(processes, total)
    [after] = server.ids("orders", 1)
    assert before < min(ids) and max(ids) < after and all(STANDARD.decode(id).node == 1 for id in ids[:1000])


def test_java_over_the_server(server, tmp_path):
    [before] = server.ids("orders", 1)
    check_between(run_java(tmp_path, server, PLAIN, ["FrazilIds.java"]), server, before, 100_000)


def test_java_continues_when_the_server_was_restarted(tmp_path):
    main = """
        public class Main {
            public static void main(String[] arguments) throws Exception {
                var ids = new FrazilIds(arguments[0], "orders");
                for (int nth = 0; nth < 100; nth++) System.out.println(ids.next());
                System.out.flush();
                System.in.read();
                for (int nth = 0; nth < 100; nth++) System.out.println(ids.next());
            }
        }
    """
    write(tmp_path, "FrazilIds.java", **{"ofSeconds(2)": "ofSeconds(60)"})
    (tmp_path / "Main.java").write_text(main)
    run(["javac", "-d", tmp_path, tmp_path / "FrazilIds.java", tmp_path / "Main.java"])
    with Replica(tmp_path, "orders=standard node=1") as replica:
        command = ["java", "-cp", tmp_path, "Main", f"http://127.0.0.1:{replica.ports['http']}"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            first = [int(program.stdout.readline()) for _ in range(100)]
            assert replica.end() == 0
            replica.start()
            rest, _ = program.communicate("\n", timeout=TIMEOUT_S)
        assert program.returncode == 0
        check_ids([first, list(map(int, rest.split()))], 200)


def test_spring_over_the_server(server, tmp_path):
    [before] = server.ids("orders", 1)
    check_between(run_java(tmp_path, server, IN_SPRING, ["FrazilIds.java", "FrazilBeans.java"], spring(tmp_path)), server, before, 16_000)


def test_mybatis_plus_inserts_rows_with_ids_of_the_server(server, tmp_path):
    [before] = server.ids("orders", 1)
    names = ["FrazilIds.java", "FrazilBeans.java", "FrazilIdentifierGenerator.java", "Order.java"]
    check_between(run_java(tmp_path, server, IN_MYBATIS, names, from_maven(tmp_path)), server, before, 16_000)


def test_cosid_beside_frazil(tmp_path):
    """The program of docs/compare.md, and the layout by which frazil reads its IDs."""
    page = (ROOT / "docs/compare.md").read_text()
    [code] = re.findall(r"^```java\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "CosIdOrders.java").write_text(code)
    [layout] = re.findall(r"^\| CosId \| `(time:.*)` \|$", page, re.MULTILINE)
    path = ":".join([*map(str, from_maven(tmp_path)), str(tmp_path)])
    run(["javac", "-cp", path, "-d", tmp_path, tmp_path / "CosIdOrders.java"])
    began = time.time()
    ids = list(map(int, run(["java", "-cp", path, "CosIdOrders", "7"]).split()))
    assert len(ids) == 3 and ids == sorted(set(ids))
    for parts in map(frazil.Layout(layout).decode, ids):
        assert parts.machine == 7 and began - 1 <= parts.time.timestamp() <= time.time()


# PHP-FPM


class Fpm:
    """PHP-FPM with four workers, and requests of its protocol, FastCGI."""

    def __init__(self, folder, script, ini="", pool="", **env):
        programs = sorted(glob.glob("/usr/sbin/php-fpm*"))
        if not programs:
            pytest.fail("php-fpm is missing: Debian's package php-fpm")
        self.address, self.script, self.log = str(folder / "fpm.sock"), folder / "index.php", folder / "fpm.log"
        self.script.write_text(script)
        user = getpass.getuser()
        lines = f"""
            [global]
            error_log = {self.log}
            daemonize = no
            [www]
            listen = {self.address}
            user = {user}
            group = {user}
            pm = static
            pm.max_children = 4
        """
        (folder / "fpm.conf").write_text(f"{textwrap.dedent(lines)}\n{pool}\n")
        (folder / "ini").mkdir()
        (folder / "ini/page.ini").write_text(ini.replace("www-data", user))
        command = [programs[-1], *(["--allow-to-run-as-root"] if os.geteuid() == 0 else []), "--fpm-config", folder / "fpm.conf"]
        env = os.environ | {"PHP_INI_SCAN_DIR": f":{folder}/ini", "LD_LIBRARY_PATH": str(LIB)} | env
        self.running = process.spawn(command, folder / "fpm.out", env=env)

    def __enter__(self):
        assert process.await_true(self.is_ready, TIMEOUT_S), self.log.read_text() + (self.log.parent / "fpm.out").read_text()
        return self

    def __exit__(self, *_):
        self.running.terminate()
        self.running.wait(TIMEOUT_S)

    def is_ready(self):
        assert self.running.poll() is None, (self.log.parent / "fpm.out").read_text()
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.address)
        except OSError:
            return False
        return True

    def ask(self, _):
        """Sends a request. Returns the worker's process ID and its IDs."""

        def record(kind, content):
            return struct.pack(">BBHHxx", 1, kind, 1, len(content)) + content

        given = {"SCRIPT_FILENAME": str(self.script), "REQUEST_METHOD": "GET"}
        pairs = b"".join(struct.pack("BB", len(name), len(value)) + f"{name}{value}".encode() for name, value in given.items())
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(self.address)
            connection.sendall(record(1, struct.pack(">H6x", 1)) + record(4, pairs) + record(4, b"") + record(5, b""))
            answer, out = connection.makefile("rb"), b""
            while head := answer.read(8):
                kind, length, padding = struct.unpack(">xBxxHBx", head)
                content = answer.read(length)
                answer.read(padding)
                assert kind != 7, content.decode()
                out += content if kind == 6 else b""
        pid, *ids = out.partition(b"\r\n\r\n")[2].decode().split()
        return int(pid), list(map(int, ids))

    def ask_many(self, count):
        """Sends requests, four at once. Returns the lists of IDs of each worker, by its process ID."""
        workers = defaultdict(list)
        with ThreadPoolExecutor(4) as pool:
            for pid, ids in pool.map(self.ask, range(count)):
                workers[pid].append(ids)
        return workers


def check_workers(workers, total=100_000):
    """Checks the IDs of workers. Returns the number of node numbers that each has used."""
    check_ids([ids for requests in workers.values() for ids in requests], total)
    return [len({STANDARD.decode(ids[0]).node for ids in requests}) for requests in workers.values()]


def test_php_fpm_over_the_server(tmp_path):
    with Replica(tmp_path, "orders=standard node=1") as replica:
        write(tmp_path, "ServerIds.php", **{"6390": str(replica.ports["resp"])})
        script = "<?php require 'ServerIds.php'; echo implode(' ', [getmypid(), ...ServerIds::next('orders', 100)]);"
        with Fpm(tmp_path, script) as fpm:
            workers = fpm.ask_many(600)
            assert len(workers) == 4
            # Each worker has kept its connection.
            metrics = replica.ask("GET", "/metrics", port="admin")[2].decode()
            assert re.search(r"^frazil_server_connections{[^}]*resp[^}]*} 4$", metrics, re.MULTILINE), metrics
            assert replica.end() == 0
            replica.start()
            for pid, requests in fpm.ask_many(600).items():
                workers[pid] += requests
        assert replica.end() == 0
    assert set(check_workers(workers)) == {1}


def ffi(folder, ini=PHP_INI, pool="", ids="Ids.php", **env):
    """Returns a PHP-FPM whose workers mint by FFI, with the page's files."""
    write(folder, "frazil.h", ids)
    (folder / "home").mkdir()
    ini = ini.replace("/etc/php", str(folder)).replace("/srv/shop", str(folder))
    pool = POOL.replace("/var/lib/frazil", str(folder / "home")) + pool
    script = "<?php $ids = []; for ($nth = 0; $nth < 30; $nth++) $ids[] = Ids::next(); echo implode(' ', [getmypid(), ...$ids]);"
    return Fpm(folder, script, ini, pool, **env)


def test_php_ffi_keeps_the_lease_as_long_as_the_worker(tmp_path):
    with ffi(tmp_path) as fpm:
        workers = fpm.ask_many(4000)
    assert len(workers) == 4 and max(map(len, workers.values())) >= 1000
    assert check_workers(workers) == [1, 1, 1, 1]


def test_php_ffi_leases_after_the_fork_also_if_the_master_has_minted(tmp_path):
    (tmp_path / "preload.php").write_text(
        "<?php require __DIR__ . '/Ids.php'; file_put_contents(__DIR__ . '/minted', (string) Ids::next());"
    )
    env = {"FRAZIL": "standard store=local", "FRAZIL_HOME": str(tmp_path / "home")}
    with ffi(tmp_path, PHP_INI.replace("Ids.php", "preload.php"), **env) as fpm:
        workers = fpm.ask_many(4000)
    assert check_workers(workers) == [1, 1, 1, 1]
    nodes = {STANDARD.decode(requests[0][0]).node for requests in workers.values()}
    of_the_master = int((tmp_path / "minted").read_text())
    assert len(nodes) == 4 and STANDARD.decode(of_the_master).node not in nodes


def test_php_ffi_leases_in_each_worker_that_replaces_another(tmp_path):
    with ffi(tmp_path, pool="pm.max_requests = 200") as fpm:
        workers = fpm.ask_many(4000)
    assert len(workers) >= 20 and set(check_workers(workers)) == {1}


def test_php_ffi_without_the_open_handle_takes_many_numbers(tmp_path):
    """The control: the page's handle that stays open is what keeps the number."""
    FILES["Without.php"] = FILES["Ids.php"].replace("if ($isFirst)", "if (false)")
    assert FILES["Without.php"] != FILES["Ids.php"]
    with ffi(tmp_path, PHP_INI.replace("Ids.php", "Without.php"), ids="Without.php") as fpm:
        workers = fpm.ask_many(400)
    assert min(check_workers(workers, 12_000)) > 1


def test_php_numbers_are_exact_where_the_page_says_so():
    code = """<?php
        $id = 9007199254740993;
        var_dump(json_decode('{"id":9223372036854775807}')->id === PHP_INT_MAX, json_encode(['id' => (string) $id]) === '{"id":"9007199254740993"}');
        var_dump(is_float($id / 2), is_float(PHP_INT_MAX + 1), (int) (float) $id === $id);
    """
    assert run(["php"], input=code).split() == ["bool(true)"] * 4 + ["bool(false)"]


# Go

GO = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
MANY = """
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"sync"
)

func main() {
	ids, err := Open("standard store=local")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Open("standard store=nowhere"); err == nil {
		log.Fatal("a wrong store was opened")
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	minted := make([][]int64, 8)
	var all sync.WaitGroup
	for thread := range minted {
		all.Add(1)
		go func(thread int) {
			defer all.Done()
			for nth := 0; nth < 5000; nth++ {
				id, err := ids.Next()
				if err != nil {
					log.Fatal(err)
				}
				minted[thread] = append(minted[thread], id)
			}
		}(thread)
	}
	all.Wait()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, list := range minted {
		for _, id := range list {
			fmt.Fprintln(out, id)
		}
	}
}
"""
JSON = """
package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

type order struct {
	ID int64 `json:"id,string"`
}

func main() {
	text := `{"id":9007199254740993}`
	var rounded map[string]any
	json.Unmarshal([]byte(text), &rounded)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var exact map[string]any
	decoder.Decode(&exact)
	var read order
	written, _ := json.Marshal(order{9007199254740993})
	json.Unmarshal(written, &read)
	fmt.Printf("%.0f %v %s %d", rounded["id"], exact["id"], written, read.ID)
}
"""


def go(folder, *arguments, **env):
    if not shutil.which("go"):
        pytest.fail("go is missing: Debian's package golang-go")
    cache = {"GOCACHE": str(ROOT / "build/go"), "FRAZIL_HOME": str(folder / "home"), "LD_LIBRARY_PATH": str(LIB)}
    return run(["go", *arguments], cwd=folder, env=os.environ | GO | cache | env)


def check_go(folder, **env):
    """Runs the page's program in several processes, and then one that mints more."""
    programs = {"page": FILES["main.go"], "many": MANY}
    minted = {}
    for name, code in programs.items():
        (folder / "main.go").write_text(code)
        go(folder, "build", "-o", name, ".", **env)
        run_env = os.environ | {"FRAZIL_HOME": str(folder / "home"), "LD_LIBRARY_PATH": str(LIB)}
        minted[name] = run_at_once([folder / name], env=run_env)
    assert [len(each) for each in minted["page"]] == [3] * PROCESSES
    check_ids(minted["page"] + minted["many"])
    done = subprocess.run([folder / "many"], env=run_env, capture_output=True, text=True, check=True)
    assert "nowhere" in done.stderr


def test_go_by_cgo(tmp_path):
    write(tmp_path, "cgo/ids.go")
    go(tmp_path, "mod", "init", "shop")
    check_go(tmp_path, PKG_CONFIG_PATH=str(LIB / "pkgconfig"))


def test_go_by_purego_without_cgo(tmp_path):
    write(tmp_path, "purego/ids.go")
    go(tmp_path, "mod", "init", "shop")
    version = re.search(r"purego (\d+\.\d+\.\d+)", PAGE)[1]
    try:
        go(tmp_path, "get", f"github.com/ebitengine/purego@v{version}")
    except AssertionError as error:
        if "proxy" not in str(error):
            raise
        pytest.skip(f"Go's module proxy does not answer: {error}")
    check_go(tmp_path, CGO_ENABLED="0")


def test_go_numbers_are_exact_where_the_page_says_so(tmp_path):
    (tmp_path / "main.go").write_text(JSON)
    go(tmp_path, "mod", "init", "shop")
    assert go(tmp_path, "run", ".") == '9007199254740992 9007199254740993 {"id":"9007199254740993"} 9007199254740993'
