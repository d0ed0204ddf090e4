import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordedJournal } from '../../../test/fakes/journal.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { NodeEvent } from '../../journal/index.ts';
import { collectLogs } from '../../lib/index.ts';
import type { ObservedPod, PodUid } from '../../pods/index.ts';
import { type OomDeps, oomLoop } from './oom-loop.ts';

const id = 'a'.repeat(64);

/**
 * A machine with a simulated kernel log, and checkpoint files that remain when the kubelet
 * restarts.
 */
function aMachine(pod = aPod({})) {
  const clock = new VirtualClock();
  const records: string[] = [];
  const files = new Map<string, string>();
  const machine = {
    kernelLog: {
      open: () => {
        let at = 0;
        const next = () => {
          const text = records[at];
          if (text !== undefined) at++;
          return text;
        };
        return { next, [Symbol.dispose]: () => {} };
      },
    },
    files: {
      readEnd: async (path: string) => (files.has(path) ? Buffer.from(files.get(path) ?? '') : undefined),
      replace: async (path: string, text: string) => void files.set(path, text),
    },
    readFile: async () => 'boot-1\n',
  } as unknown as OomDeps['machine'];
  const nodeEvents: NodeEvent[] = [];
  const journal = new RecordedJournal();
  const { logger } = collectLogs(clock);
  const { uid } = pod.metadata;
  const live = async (during: () => void) => {
    const observed = { containers: [{ id, name: 'main' }] } as unknown as ObservedPod;
    const loops = oomLoop(
      { rootDir: '/root' },
      { machine, clock, logger },
      {
        node: { event: (event) => void nodeEvents.push(event) },
        journal,
        pods: { getPodByUid: (asked: PodUid) => (asked === uid ? pod : undefined) },
        observed: () => observed,
        bootFile: '/proc/sys/kernel/random/boot_id',
      },
    );
    const stop = new AbortController();
    const running = Object.values(loops).map((loop) => loop.run(stop.signal));
    await clock.advance(10);
    during();
    await clock.advance(4_000);
    stop.abort(new Error('ended'));
    await Promise.all(running);
  };
  const say = (message: string) => void records.push(`6,${records.length},1,-;${message}`);
  const oom = (place: string, pod = uid) => {
    say('x invoked oom-killer: gfp_mask=0');
    say(
      `oom-kill:constraint=C,nodemask=(null),cpuset=/,mems_allowed=0,${place},task_memcg=/kubepods/pod${pod}/${id},task=hog,pid=9,uid=0`,
    );
  };
  return { live, oom, nodeEvents, journal, files };
}

test('reports each OOM kill once to the node and the pod, also after a restart', async () => {
  const { live, oom, nodeEvents, journal, files } = aMachine();
  await live(() => oom('global_oom'));
  await live(() => oom(`oom_memcg=/kubepods/podx/${id}`));
  await live(() => {});
  assert.deepEqual(nodeEvents, [
    {
      type: 'Warning',
      reason: 'SystemOOM',
      message: 'System OOM encountered, victim process: hog, pid: 9',
    },
  ]);
  assert.deepEqual(
    journal.events.map(({ reason, message, fieldPath }) => [reason, message, fieldPath]),
    [
      [
        'OOMKilling',
        'Container main ran out of memory as the node had none left for pods: the kernel killed its process hog',
        'spec.containers{main}',
      ],
      [
        'OOMKilling',
        'Container main reached its memory limit: the kernel killed its process hog',
        'spec.containers{main}',
      ],
    ],
  );
  assert.deepEqual(JSON.parse(files.get('/root/kernel-log.json') ?? ''), { boot: 'boot-1', sequence: 3 });
});

test('ignores a corrupt checkpoint of the log position, and OOM kills of unknown pods', async () => {
  const { live, oom, nodeEvents, journal, files } = aMachine();
  files.set('/root/kernel-log.json', '{"boot":');
  oom('global_oom');
  await live(() => oom('oom_memcg=/kubepods', 'another' as PodUid));
  assert.deepEqual([nodeEvents, journal.events], [[], []]);
});
