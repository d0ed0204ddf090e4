import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import { mounted, podWith } from './volume-objects.ts';

/** The tests use the real kubectl and the real containerd. */
describe('pod eviction on kubeling up', { timeout: 300_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;

  before(async () => {
    cluster = await LocalCluster.open();
  });

  after(async () => {
    const left = await cluster?.leave();
    assert.deepEqual(left, []);
  });

  it('evicts a pod that exceeds its emptyDir limit, reports the reason and keeps the pod failed', async () => {
    const emptyDir = { sizeLimit: '1Mi' };
    const fill = 'dd if=/dev/zero of=/data/x bs=1M count=3';
    await cluster.apply(podWith('over', fill, mounted, { volumes: [{ name: 'data', emptyDir }] }));
    const message = 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ';
    const shown = [
      'get',
      'pod',
      'over',
      '-o',
      'jsonpath={.status.phase} {.status.reason}: {.status.message}',
    ];
    await cluster.until('the pod is evicted', shown, (out) => out === `Failed Evicted: ${message}`);
    await cluster.event('the event', 'Evicted');
    const { node } = cluster;
    await node.end('SIGKILL');
    await node.start();
    await cluster.apply(podWith('next', 'true', mounted, { volumes: [{ name: 'data', emptyDir }] }));
    await cluster.ready('next');
    assert.equal(await cluster.kubectl(...shown), `Failed Evicted: ${message}`);
    const short = '{range .items[0].status.conditions[?(@.status=="True")]}{.type} {end}';
    assert.equal((await cluster.kubectl('get', 'nodes', '-o', `jsonpath=${short}`)).trim(), 'Ready');
  });
});
