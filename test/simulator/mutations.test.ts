import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedNode } from '../fakes/simulated-node.ts';
import { type SimulatorMutation, simulatorMutations } from './mutations.ts';

type Observation = (node: SimulatedNode) => Promise<unknown>;

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'succeeds',
    () => 'fails',
  );

const ended = async (node: SimulatedNode) =>
  await node.exited((await node.pod('sleep 1; exit 3')).containerId);

/** A scenario in which the mutated runtime violates the rule, and the check that finds this. */
const observations: { readonly [Mutation in SimulatorMutation]: Observation } = {
  'exit-code-lost': async (node) => (await ended(node)).exitCode,
  'finished-before-started': async (node) => {
    const { startedAt, finishedAt } = await ended(node);
    return startedAt <= finishedAt;
  },
  'state-filter-ignored': async (node) => {
    await node.sandbox();
    const filter = { state: { state: 'SANDBOX_NOTREADY' as const } };
    return (await node.done(node.cri.listPodSandbox({ filter }, node.options))).items.length;
  },
  'label-filter-matches-any': async (node) => {
    await node.sandbox();
    const filter = { labelSelector: { 'io.kubernetes.pod.uid': 'uid-pod', other: 'label' } };
    return (await node.done(node.cri.listPodSandbox({ filter }, node.options))).items.length;
  },
  'stop-missing-fails': (node) => outcome(node.stop('nope')),
  'stop-exited-fails': async (node) => await outcome(node.stop((await ended(node)).id)),
  'remove-missing-fails': (node) =>
    outcome(node.done(node.cri.removeContainer({ containerId: 'nope' }, node.options))),
  'remove-running-refused': async (node) => {
    const { containerId } = await node.pod();
    return await outcome(node.done(node.cri.removeContainer({ containerId }, node.options)));
  },
  'name-not-reserved': async (node) => {
    await node.sandbox();
    return await outcome(node.sandbox());
  },
  'start-twice-allowed': async (node) => await outcome(node.start((await node.pod()).containerId)),
  'exec-timeout-answers': async (node) => {
    const { containerId } = await node.pod();
    const request = { containerId, cmd: ['sleep', '100'], timeout: 1n };
    return await outcome(node.done(node.cri.execSync(request, node.options)));
  },
  'log-stream-mixed-up': async (node) => {
    await node.exited((await node.pod('echo out')).containerId);
    return (node.files.read('/logs/pod/main.log') ?? '').split(' ')[1];
  },
  'events-silent': async (node) => {
    const heard: string[] = [];
    const read = async () => {
      for await (const event of node.transport.containerdEvents.subscribe({}, node.options))
        heard.push(event.topic);
    };
    const reading = read().catch(() => {});
    await node.clock.advance(10);
    await node.sandbox();
    await node.clock.advance(10);
    node.runtime.disconnect();
    await reading;
    return heard.length > 0;
  },
};

for (const mutation of simulatorMutations) {
  test(`the mutation ${mutation} changes the observed behaviour of the simulated runtime`, async () => {
    const look = observations[mutation];
    using healthy = new SimulatedNode({ flavour: 'containerd-2' });
    using broken = new SimulatedNode({ flavour: 'containerd-2', mutation });
    assert.notDeepEqual(await look(broken), await look(healthy));
  });
}
