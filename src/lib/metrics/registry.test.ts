import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { exponentialBuckets, labelText } from './instruments.ts';
import { MetricRegistry, type SampledFamily } from './registry.ts';

const open = new AbortController().signal;

function setUp(maxSeries = 100) {
  const errors: unknown[] = [];
  const registry = new MetricRegistry({ maxSeries, onError: (error) => errors.push(error) });
  /** The exposition without the registry's own metrics. */
  const text = async () => {
    const lines = (await registry.expose(open)).split('\n');
    return lines.filter((line) => !line.includes('kubeling_metric_')).join('\n');
  };
  return { registry, errors, text };
}

test('exposes help, type and every series, sorted by name', async () => {
  const { registry, text } = setUp();
  const running = registry.gauge({ name: 'kubelet_running_pods', help: 'Number of pods.' });
  const operations = registry.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'Operations by type.',
    labels: ['operation_type'],
  });
  const evictions = registry.counter({
    name: 'kubelet_evictions',
    help: 'Unused.',
    labels: ['eviction_signal'],
  });
  const start = registry.histogram({
    name: 'a_seconds',
    help: 'Time.',
    buckets: [0.5, 1, 10],
    labels: ['kind'],
  });
  operations.with({ operation_type: 'pull_image' }).inc();
  operations.with({ operation_type: 'pull_image' }).inc(2);
  operations.with({ operation_type: 'exec_sync' }).inc();
  running.with({}).set(4);
  for (const seconds of [0.1, 0.5, 7, 100]) start.with({ kind: 'x' }).observe(seconds);
  assert.equal(evictions.size, 0);
  assert.equal(
    await text(),
    [
      '# HELP a_seconds Time.',
      '# TYPE a_seconds histogram',
      'a_seconds_bucket{kind="x",le="0.5"} 2',
      'a_seconds_bucket{kind="x",le="1"} 2',
      'a_seconds_bucket{kind="x",le="10"} 3',
      'a_seconds_bucket{kind="x",le="+Inf"} 4',
      'a_seconds_sum{kind="x"} 107.6',
      'a_seconds_count{kind="x"} 4',
      '# HELP kubelet_running_pods Number of pods.',
      '# TYPE kubelet_running_pods gauge',
      'kubelet_running_pods 4',
      '# HELP kubelet_runtime_operations_total Operations by type.',
      '# TYPE kubelet_runtime_operations_total counter',
      'kubelet_runtime_operations_total{operation_type="pull_image"} 3',
      'kubelet_runtime_operations_total{operation_type="exec_sync"} 1',
      '',
    ].join('\n'),
  );
});

test('a metric without labels exists from the start, with zero', async () => {
  const { registry, text } = setUp();
  registry.histogram({ name: 'h', help: 'H.', buckets: [1] });
  assert.match(await text(), /h_bucket\{le="1"\} 0\nh_bucket\{le="\+Inf"\} 0\nh_sum 0\nh_count 0\n/);
});

test('counters only increase, gauges also decrease, and NaN is ignored', () => {
  const { registry } = setUp();
  const counter = registry.counter({ name: 'c', help: '' }).with({});
  for (const by of [1, -5, Number.NaN, 0.5]) counter.inc(by);
  assert.equal(counter.value, 1.5);
  const gauge = registry.gauge({ name: 'g', help: '' }).with({});
  gauge.set(3);
  gauge.inc();
  gauge.dec(2);
  assert.equal(gauge.value, 2);
  const histogram = registry.histogram({ name: 'h', help: '', buckets: [1] }).with({});
  histogram.observe(Number.NaN);
  histogram.observe(-1);
  assert.deepEqual([histogram.count, histogram.sum], [1, -1]);
});

test('the same labels give the same series, whatever their order', () => {
  const family = setUp().registry.counter({ name: 'c', help: '', labels: ['a', 'b'] });
  assert.equal(family.with({ a: '1', b: '2' }), family.with({ b: '2', a: '1' }));
  assert.notEqual(family.with({ a: '1', b: '2' }), family.with({ a: '2', b: '1' }));
});

test('series are removed by any of their labels', async () => {
  const { registry, text } = setUp();
  const family = registry.counter({ name: 'probe', help: '', labels: ['pod', 'result'] });
  for (const pod of ['a', 'b']) for (const result of ['ok', 'failed']) family.with({ pod, result }).inc();
  assert.equal(family.remove({ pod: 'a' }), 2);
  assert.equal(family.remove({ pod: 'a' }), 0);
  assert.equal(family.remove({ pod: 'b', result: 'ok' }), 1);
  assert.match(await text(), /TYPE probe counter\nprobe\{pod="b",result="failed"\} 1\n$/);
  assert.equal(family.remove(), 1);
  assert.equal(family.size, 0);
});

test('a series beyond the limit is not exposed but counted as overflow, and existing series still count', async () => {
  const { registry } = setUp(2);
  const family = registry.counter({ name: 'requests', help: '', labels: ['path'] });
  for (let i = 0; i < 100_000; i++) family.with({ path: `/${i}` }).inc();
  family.with({ path: '/0' }).inc();
  assert.equal(family.size, 2);
  const text = await registry.expose(open);
  assert.match(text, /requests\{path="\/0"\} 2\n/);
  assert.match(text, /kubeling_metric_series_overflow_total\{family="requests"\} 99998\n/);
});

test('overflows are counted for every metric, even if more metrics overflow than the series limit', async () => {
  const { registry } = setUp(1);
  for (const name of ['a', 'b', 'c']) {
    const family = registry.counter({ name, help: '', labels: ['x'] });
    for (const x of ['1', '2']) family.with({ x });
  }
  assert.equal((await registry.expose(open)).match(/overflow_total\{/g)?.length, 3);
});

test('collectors are called at every exposition until they are removed', async () => {
  const { registry, text } = setUp();
  let requestCount = 0;
  const family = (): SampledFamily => ({
    name: 'container_cpu_usage_seconds_total',
    help: 'CPU.',
    type: 'counter',
    samples: [
      { labels: { container: 'c', pod: 'p' }, value: ++requestCount, timestampMs: 1_700_000_000_000 },
      { labels: { container: 'c', pod: 'p' }, value: 99 },
      { labels: { container: 'unknown', pod: 'p' }, value: undefined },
    ],
  });
  const link = registry.collect(async () => [family()]);
  await text();
  assert.equal(
    await text(),
    [
      '# HELP container_cpu_usage_seconds_total CPU.',
      '# TYPE container_cpu_usage_seconds_total counter',
      'container_cpu_usage_seconds_total{container="c",pod="p"} 2 1700000000000',
      '',
    ].join('\n'),
  );
  link[Symbol.dispose]();
  assert.equal(await text(), '');
});

test('a failing collector is counted, and the other metrics are exposed', async () => {
  const { registry, errors } = setUp();
  registry.gauge({ name: 'kept', help: '' });
  registry.collect(() => {
    throw new Error('thrown synchronously');
  });
  registry.collect(() => Promise.reject(new Error('later')));
  const text = await registry.expose(open);
  assert.equal(errors.length, 2);
  assert.match(text, /kept 0\n/);
  assert.match(await registry.expose(open), /collector_errors_total [24]\n/);
});

test('a collector exposes no more series than the limit', async () => {
  const { registry } = setUp(3);
  const samples = Array.from({ length: 10 }, (_, index) => ({ labels: { i: `${index}` }, value: index }));
  registry.collect(() => [{ name: 'many', help: '', type: 'gauge', samples }]);
  const text = await registry.expose(open);
  assert.equal(text.match(/^many\{/gm)?.length, 3);
  assert.match(text, /overflow_total\{family="many"\} 1\n/);
});

test('labels given as text identify the same series as labels given as an object', async () => {
  const { registry, text } = setUp();
  const samples = [
    { labels: labelText(['a', 'b'], { a: '"', b: '2' }), value: 1 },
    { labels: { a: '"', b: '2' }, value: 2 },
    { labels: 'a="x",b="2"', value: 3 },
  ];
  registry.collect(() => [{ name: 'x', help: 'X.', type: 'gauge', samples }]);
  assert.equal(await text(), '# HELP x X.\n# TYPE x gauge\nx{a="\\"",b="2"} 1\nx{a="x",b="2"} 3\n');
});

test('yields to the event loop while writing very many samples', async () => {
  const { registry } = setUp(1_000);
  const families = Array.from({ length: 5 }, (_, index) => ({
    name: `x${index}`,
    help: 'X.',
    type: 'gauge' as const,
    samples: Array.from({ length: 1_000 }, (_, each) => ({ labels: { each: `${each}` }, value: 1 })),
  }));
  registry.collect(() => families);
  let [turns, isOver] = [0, false];
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const page = await registry.expose(open);
  isOver = true;
  assert.deepEqual([page.match(/^x/gm)?.length, turns >= 4], [5_000, true]);
});

test('an abort ends the exposition with its reason', async () => {
  const { registry, errors } = setUp();
  registry.collect(async (signal) => {
    signal.throwIfAborted();
    return [];
  });
  await assert.rejects(registry.expose(AbortSignal.abort(new Error('enough'))), /enough/);
  assert.deepEqual(errors, []);
});

test('rejects invalid names, duplicates and invalid buckets', () => {
  const { registry } = setUp();
  registry.counter({ name: 'taken', help: '' });
  const refused = [
    () => registry.counter({ name: 'taken', help: '' }),
    () => registry.counter({ name: '1st', help: '' }),
    () => registry.counter({ name: 'a', help: '', labels: ['x', 'x'] }),
    () => registry.counter({ name: 'a', help: '', labels: ['__x'] }),
    () => registry.counter({ name: 'a', help: '', labels: ['x-y'] }),
    () => registry.histogram({ name: 'a', help: '', labels: ['le'], buckets: [1] }),
    () => registry.histogram({ name: 'a', help: '', buckets: [1, 1] }),
    () => registry.histogram({ name: 'a', help: '', buckets: [1, Number.NaN] }),
  ];
  for (const make of refused) assert.throws(make, { code: 'BUG' });
});

test('exponential buckets equal those of the Go client', async () => {
  const { registry, text } = setUp();
  registry.histogram({ name: 'h', help: '', buckets: exponentialBuckets(0.005, 2.5, 14) });
  const bounds = [...(await text()).matchAll(/le="([^"]+)"/g)].map((match) => match[1]);
  assert.equal(bounds.length, 15);
  assert.deepEqual(bounds.slice(0, 5), ['0.005', '0.0125', '0.03125', '0.078125', '0.1953125']);
  assert.equal(bounds.at(-1), '+Inf');
});

test('an observation counts in every bucket whose bound is at least the value', async () => {
  const bounds = fc.uniqueArray(fc.integer({ min: -50, max: 50 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(bounds, fc.array(fc.integer({ min: -60, max: 60 })), async (unsorted, values) => {
      const buckets = unsorted.toSorted((a, b) => a - b);
      const { registry, text } = setUp();
      const histogram = registry.histogram({ name: 'h', help: '', buckets }).with({});
      for (const value of values) histogram.observe(value);
      const shown = await text();
      for (const bound of buckets) {
        const expected = values.filter((value) => value <= bound).length;
        assert.ok(shown.includes(`h_bucket{le="${bound}"} ${expected}\n`));
      }
      assert.ok(shown.includes(`h_count ${values.length}\n`));
    }),
    { numRuns: 30 },
  );
});

test('a million updates of a metric are fast, and so are updates that look up the series by its labels', () => {
  const family = setUp().registry.counter({ name: 'c', help: '', labels: ['a', 'b'] });
  const held = family.with({ a: '1', b: '2' });
  const started = process.threadCpuUsage();
  for (let i = 0; i < 1_000_000; i++) held.inc();
  for (let i = 0; i < 100_000; i++) family.with({ a: '1', b: '2' }).inc();
  assert.equal(held.value, 1_100_000);
  assert.ok(process.threadCpuUsage(started).user < 10e6);
});
