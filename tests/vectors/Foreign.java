// Mints IDs with the libraries that docs/moving.md names, and prints them, with the parts by each library, for foreign.json beside this file.
//
//   javac -d CLASSES -cp LIBRARIES tests/vectors/Foreign.java && java -cp CLASSES:LIBRARIES Foreign > tests/vectors/foreign.json
//
// LIBRARIES are the classes of github.com/yitter/IdGenerator at 942ba6a (Java/source), github.com/f4b6a3/tsid-creator at a28f536
// (5.2.7-SNAPSHOT) and github.com/dromara/hutool at 2959e83 (hutool-core, 5.8.34), each with its defaults.

import cn.hutool.core.lang.Snowflake;
import com.github.f4b6a3.tsid.Tsid;
import com.github.f4b6a3.tsid.TsidFactory;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.core.SnowWorkerM1;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

public class Foreign {
    static final List<String> rows = new ArrayList<>();

    static void row(String system, String layout, long id, long unixMs, String fields, String text) {
        String shown = text == null ? "" : String.format(", \"text\": \"%s\"", text);
        rows.add(String.format("    {\"system\": \"%s\", \"layout\": \"%s\", \"id\": \"%d\", \"unix_ms\": %d, \"fields\": {%s}%s}", system, layout, id, unixMs, fields, shown));
    }

    public static void main(String[] arguments) throws Exception {
        for (short worker : new short[] {0, 1, 42, 63}) {
            SnowWorkerM1 generator = new SnowWorkerM1(new IdGeneratorOptions(worker));
            // This library does not decode an ID's time. The clock's time counts if it is equal before and after.
            for (long before, id; ; ) {
                Thread.sleep(3);
                before = System.currentTimeMillis();
                id = generator.nextId();
                if (System.currentTimeMillis() == before) {
                    row("Yitter", "time:51@1ms worker:6 sequence:6 epoch:1582136402000", id, before, "\"worker\": " + worker, null);
                    break;
                }
            }
        }
        for (int node : new int[] {0, 1, 512, 1023}) {
            Clock clock = Clock.fixed(Instant.parse("2025-06-0" + (1 + node % 7) + "T12:00:00.123Z"), ZoneOffset.UTC);
            Tsid id = TsidFactory.builder().withNode(node).withClock(clock).build().create();
            row("TSID", "time:41@1ms node:10 sequence:12 epoch:2020-01-01", id.toLong(), id.getInstant().toEpochMilli(), "\"node\": " + node, id.toString());
        }
        for (long[] node : new long[][] {{0, 0}, {1, 2}, {31, 31}}) {
            Snowflake generator = new Snowflake(node[0], node[1]);
            long id = generator.nextId();
            String fields = "\"datacenter\": " + generator.getDataCenterId(id) + ", \"worker\": " + generator.getWorkerId(id);
            row("Hutool", "twitter", id, generator.getGenerateDateTime(id), fields, null);
        }
        System.out.println("{\n  \"ids\": [\n" + String.join(",\n", rows) + "\n  ]\n}");
    }
}
