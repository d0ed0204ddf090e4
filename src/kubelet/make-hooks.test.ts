import assert from 'node:assert/strict';
import { it } from 'node:test';
import { RecordedJournal } from '../../test/fakes/journal.ts';
import { podOf } from '../../test/fakes/pod-runtime-rig.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { settings } from '../../test/simulation/kubelet-life.ts';
import { collectLogs, MetricRegistry } from '../lib/index.ts';
import { type HooksDeps, makeHooks } from './make-hooks.ts';

it('a hook without a host asks the pod, and the node where the pod has its network', async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const dialHttp = async ({ host }: { readonly host: string }) => {
    asked.push(host);
    return { status: 200, headers: {}, body: Buffer.alloc(0) };
  };
  const hooks = makeHooks(settings, {
    clock,
    logger: collectLogs(clock).logger,
    metrics: new MetricRegistry({ onError: () => {} }),
    journal: new RecordedJournal(),
    nodeIps: () => settings.nodeIps,
    podIps: async () => ['10.1.0.7'],
    machine: { dialHttp },
  } as unknown as HooksDeps);
  for (const hostNetwork of [false, true]) {
    const target = { pod: podOf({ a: {} }, { hostNetwork }), container: { name: 'a' }, containerId: 'id' };
    await hooks.run({ httpGet: { port: 80 } }, target, new AbortController().signal);
  }
  assert.deepEqual(asked, ['10.1.0.7', '10.0.0.1']);
});
