import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ClusterNode } from './cluster-node.ts';
import { container, isReady, pod, podIs, podSpec } from './cluster-pods.ts';
import { ControlPlane } from './control-plane.ts';
import { patiently } from './patiently.ts';
import { clusterAssets, noCluster } from './programs.ts';

const busy = 'head -c 20000000 /dev/zero > /tmp/file; echo spoken; while true; do :; done';

interface Used {
  readonly cpu?: { readonly usageNanoCores?: number; readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly workingSetBytes?: number };
}

interface Summary {
  readonly node: Used & { readonly nodeName: string; readonly fs?: { readonly capacityBytes?: number } };
  readonly pods: readonly (Used & {
    readonly podRef: { readonly name: string; readonly uid: string };
    readonly network?: { readonly name: string };
    readonly process_stats?: { readonly process_count: number };
    readonly 'ephemeral-storage'?: { readonly usedBytes?: number };
    readonly containers: readonly (Used & { readonly name: string; readonly startTime: string })[];
  })[];
}

describe('the API server proxies the usage of a node and its pods', {
  skip: noCluster(),
  timeout: 600_000,
}, () => {
  let plane: ControlPlane;
  let node: ClusterNode;

  before(async () => {
    plane = await ControlPlane.open(clusterAssets());
    node = await ClusterNode.open(plane);
    await node.start();
    await node.ready();
    const resources = { limits: { cpu: '100m', memory: '100Mi' } };
    await plane.apply(
      pod('busy', podSpec([container('main', { command: ['sh', '-c', busy], resources })])),
      pod('idle'),
    );
    for (const name of ['busy', 'idle']) {
      await podIs(plane, name, 'Ready', isReady, () => node.out.slice(-6_000));
    }
  });

  after(async () => {
    try {
      assert.deepEqual(await node?.leave(), []);
    } finally {
      await plane?.[Symbol.asyncDispose]();
    }
  });

  const raw = (path: string) => plane.kubectl('get', '--raw', `/api/v1/nodes/${node.name}/proxy${path}`);

  it('serves a summary with the node and its pods, with CPU rates after two samples', async () => {
    let last = '';
    const summary = await patiently(
      'rates of use',
      async () => {
        last = await raw('/stats/summary');
        const read: Summary = JSON.parse(last);
        const found = read.pods.find(({ podRef }) => podRef.name === 'busy');
        const used = [read.node, found, found?.containers[0]];
        const isFull = used.every((each) => (each?.cpu?.usageNanoCores ?? 0) > 0);
        // Also waits for the storage usage, because the runtime updates the size of a container's
        // writable layer only periodically.
        const written = found?.['ephemeral-storage']?.usedBytes ?? 0;
        return isFull && written > 20_000_000 ? read : undefined;
      },
      () => last,
    );
    assert.equal(summary.node.nodeName, node.name);
    assert.ok((summary.node.fs?.capacityBytes ?? 0) > 0);
    assert.deepEqual(summary.pods.map(({ podRef }) => podRef.name).sort(), ['busy', 'idle']);
    const one = summary.pods.find(({ podRef }) => podRef.name === 'busy');
    assert.ok(one);
    assert.equal(one.network?.name, 'eth0');
    assert.ok((one.process_stats?.process_count ?? 0) >= 2);
    const nanoCores = one.cpu?.usageNanoCores ?? 0;
    assert.ok(nanoCores > 1e6 && nanoCores < 3e8, `a tenth of a core is what it may use: ${nanoCores}`);
    assert.ok((one.memory?.workingSetBytes ?? 0) < 100 * 1_024 ** 2);
  });

  it('serves metrics of every container, whose counters increase', async () => {
    const read = async () => {
      const page = await raw('/metrics/resource');
      const row = /^container_cpu_usage_seconds_total\{container="main",pod="busy",.*\} (\S+) (\d+)$/m.exec(
        page,
      );
      assert.ok(row, page);
      assert.match(page, /^node_memory_working_set_bytes \S+ \d+$/m);
      assert.match(page, /^resource_scrape_error 0$/m);
      const [, seconds, atMs] = row;
      return { seconds: Number(seconds), atMs: Number(atMs) };
    };
    const first = await read();
    assert.ok(Math.abs(first.atMs - Date.now()) < 60_000, 'what is told is less than a minute old');
    await patiently('the counter to grow', async () =>
      (await read()).seconds > first.seconds ? true : undefined,
    );
  });

  it('serves cgroup metrics of the pod, its sandbox and its container', async () => {
    const page = await raw('/metrics/cadvisor');
    const has = (name: string, container: string, more = '') => {
      const row = new RegExp(`^${name}\\{container="${container}",.*pod="busy".*${more}\\} (\\S+)`, 'm').exec(
        page,
      );
      assert.ok(Number(row?.[1] ?? 0) > 0, `${name} of ${container || 'the pod'} must be there and over 0`);
    };
    has('container_cpu_usage_seconds_total', 'main', 'cpu="total"');
    has('container_memory_working_set_bytes', 'main');
    has('container_spec_memory_limit_bytes', 'main');
    has('container_cpu_cfs_throttled_periods_total', 'main');
    has('container_processes', 'main');
    has('container_memory_usage_bytes', '');
    has('container_network_receive_bytes_total', 'POD', 'interface="eth0"');
    assert.match(page, /^machine_cpu_cores \d+$/m);
  });
});
