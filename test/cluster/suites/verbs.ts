import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/kinds/index.ts';
import { eventually } from '../../kubeling-node.ts';
import { container, isReady, pod, podIsGone, podPath, podSpec, removePods } from '../cluster-pods.ts';
import { Conversation } from '../conversation.ts';
import type { SmallCluster } from '../small-cluster.ts';
import { Terminal } from '../terminal.ts';
import { app, disruptionBudget } from '../workload-objects.ts';
import type { Place } from './place.ts';

/** A script that echoes its input until it reads `end`. */
const echoes = 'while read -r word; do echo "heard $word"; if [ "$word" = end ]; then exit 3; fi; done';

/** Tests the kubectl commands for pods. */
export function verbsOfKubectl(place: Place): void {
  describe(`kubectl commands for pods of ${place.name}`, { skip: place.skip, timeout: 600_000 }, () => {
    let cluster: SmallCluster;

    before(async () => {
      cluster = await place.open();
      await cluster.node.reachable();
    });

    after(async () => {
      await place.close(cluster);
    });

    const kubectl = (...args: readonly string[]) => new Conversation(cluster.plane.spawnKubectl(...args));
    const shell = (command: string, fields: object = {}) =>
      container('main', { command: ['sh', '-c', command], ...fields });
    const rolledOut = (what: string) => cluster.plane.kubectl('rollout', 'status', what, '--timeout=90s');
    const put = async (name: string, spec: object) => {
      await cluster.plane.make(pod(name, spec));
      return await cluster.ready(name);
    };

    it('cordon keeps running pods and lets new ones wait; uncordon lets them be scheduled', async () => {
      const { node, plane } = cluster;
      await put('stays', podSpec([container('main')]));
      await plane.kubectl('cordon', node.name);
      await plane.make(pod('waits'));
      const isPutOff = ({ status }: Pod) =>
        status?.conditions?.some(
          ({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable',
        ) === true;
      await cluster.podIs('waits', 'put off', isPutOff);
      assert.ok(isReady(await cluster.ready('stays')));
      await plane.kubectl('uncordon', node.name);
      await cluster.ready('waits');
      await removePods(plane, 'stays', 'waits');
    });

    it('drain evicts pods within the limit of their disruption budget', {
      skip: place.lacks('controllers'),
    }, async () => {
      const { node, plane } = cluster;
      const scratch = podSpec([container('main', { volumeMounts: [{ name: 'dir', mountPath: '/dir' }] })], {
        volumes: [{ name: 'dir', emptyDir: {} }],
      });
      await node.put('fixed.json', pod('fixed'));
      const pair = app('Deployment', 'pair', { replicas: 2 });
      await plane.make(
        pair,
        disruptionBudget('pair', 1),
        app('DaemonSet', 'daemon'),
        pod('scratch', scratch),
      );
      for (const what of ['deployment/pair', 'daemonset/daemon']) await rolledOut(what);
      await cluster.ready('scratch');
      const mirror = await cluster.ready(`fixed-${node.name}`);
      const [daemon] = await cluster.podsWith('app=daemon');
      const before = (await cluster.podsWith('app=pair')).map(({ metadata }) => metadata?.name ?? '');

      const refusal = await plane.kubectl('drain', node.name).then(String, String);
      assert.match(refusal, /DaemonSet-managed Pods \(use --ignore-daemonsets/);
      assert.match(refusal, /Pods with local storage \(use --delete-emptydir-data/);
      const flags = ['--ignore-daemonsets', '--delete-emptydir-data', '--force'];
      await using drain = kubectl('drain', node.name, ...flags);
      await drain.says(/would violate the pod's disruption budget/);
      await podIsGone(plane, 'scratch');
      await cluster.noContainersOf('scratch');
      const stays = (found: Pod) => isReady(found) && found.metadata?.deletionTimestamp === undefined;
      const left = (await cluster.podsWith('app=pair')).filter(stays);
      assert.equal(left.length, 1);
      // After the uncordon the replacement of the first pod is scheduled, so that the second one
      // may be evicted.
      await plane.kubectl('uncordon', node.name);
      assert.equal(await drain.ends(), '0', drain.out);
      for (const name of before) {
        assert.equal(await plane.get(podPath(name)), undefined);
        await cluster.noContainersOf(name);
      }
      await rolledOut('deployment/pair');
      for (const stayed of [mirror, daemon]) {
        const now = await cluster.ready(stayed?.metadata?.name ?? '');
        assert.equal(now.metadata?.uid, stayed?.metadata?.uid);
        assert.deepEqual(now.status?.containerStatuses, stayed?.status?.containerStatuses);
      }
      await node.take('fixed.json');
      await plane.kubectl(
        'delete',
        'deployment/pair',
        'daemonset/daemon',
        'pdb/pair',
        '--cascade=foreground',
      );
    });

    it('drain deletes pods without a controller only with --force, and keeps mirror pods', async () => {
      const { node, plane } = cluster;
      await node.put('fixed.json', pod('fixed'));
      await put('alone', podSpec([container('main')]));
      const mirror = await cluster.ready(`fixed-${node.name}`);
      const refusal = await plane.kubectl('drain', node.name).then(String, String);
      assert.match(refusal, /declare no controller \(use --force/);
      await plane.kubectl('drain', node.name, '--force');
      assert.equal(await plane.get(podPath('alone')), undefined);
      await cluster.noContainersOf('alone');
      const now = await cluster.ready(`fixed-${node.name}`);
      assert.equal(now.metadata?.uid, mirror.metadata?.uid);
      assert.deepEqual(now.status?.containerStatuses, mirror.status?.containerStatuses);
      await plane.kubectl('uncordon', node.name);
      await node.take('fixed.json');
      await podIsGone(plane, `fixed-${node.name}`);
    });

    describe('kubectl commands, each tested with its own pods', { concurrency: true }, () => {
      it('attach transfers input and output, and the container keeps running afterwards', async () => {
        const { status } = await put('listens', podSpec([shell(echoes, { stdin: true })]));
        for (const word of ['one', 'two']) {
          await using attached = kubectl('attach', '-i', 'listens');
          await attached.asks(`${word}\n`, new RegExp(`heard ${word}\n`));
          attached.close();
          assert.equal(await attached.ends(), '0', attached.out);
        }
        assert.match(await cluster.plane.kubectl('logs', 'listens'), /^(heard one\n)+(heard two\n)+$/);
        const now = await cluster.ready('listens');
        assert.deepEqual(now.status?.containerStatuses, status?.containerStatuses);
        await removePods(cluster.plane, 'listens');
      });

      it('attach transfers the last output of a container, and ends when the container exits', async () => {
        const spec = podSpec([shell(echoes, { stdin: true })], { restartPolicy: 'Never' });
        await put('ends', spec);
        await using looksOn = kubectl('attach', 'ends');
        await using types = kubectl('attach', '-i', 'ends');
        // The container may exit only after both clients are attached.
        await Promise.all([types, looksOn].map((each) => types.asks('first\n', /heard first\n/, each)));
        types.say('end\n');
        for (const attached of [types, looksOn]) {
          assert.equal(await attached.ends(), '0', attached.out);
          assert.match(attached.out, /heard first\nheard end\n/);
        }
        const { status } = await cluster.phase('ends', 'Failed');
        assert.equal(status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 3);
        await removePods(cluster.plane, 'ends');
      });

      it("attach to a container with stdinOnce closes the input of the container when the client's input ends", async () => {
        const once = { stdin: true, stdinOnce: true };
        await put('once', podSpec([shell('cat; echo over', once)], { restartPolicy: 'Never' }));
        await using attached = kubectl('attach', '-i', 'once');
        await attached.asks('a\n', /a\n/);
        attached.say('b\n');
        attached.close();
        assert.equal(await attached.ends(), '0', attached.out);
        assert.match(attached.out, /a\nb\nover\n$/);
        await cluster.phase('once', 'Succeeded');
        await removePods(cluster.plane, 'once');
      });

      it('run -i --rm runs a pod for one command, returns its exit code, and deletes the pod', async () => {
        const image = `--image=${cluster.node.image}`;
        await using runs = kubectl(
          'run',
          'passing',
          '-i',
          '--rm',
          '--restart=Never',
          image,
          '--',
          'sh',
          '-c',
          echoes,
        );
        await runs.asks('this\n', /heard this\n/);
        runs.say('end\n');
        assert.equal(await runs.ends(), '3', runs.out);
        await podIsGone(cluster.plane, 'passing');
        await cluster.noContainersOf('passing');
      });

      it('exec -it provides a terminal that follows the size of the window', async () => {
        await put('exec-terminal', podSpec([container('main')]));
        await using terminal = Terminal.open(cluster.plane, 'exec', '-it', 'exec-terminal', '--', 'sh');
        await seesTerminal(terminal);
        terminal.talk.say('exit 7\n');
        assert.equal(await terminal.talk.ends(), '7', terminal.talk.out);
        await removePods(cluster.plane, 'exec-terminal');
      });

      it('attach -it provides the terminal of the container', async () => {
        const tty = container('main', { command: ['sh'], stdin: true, tty: true });
        await put('tty', podSpec([tty], { restartPolicy: 'Never' }));
        await using terminal = Terminal.open(cluster.plane, 'attach', '-it', 'tty');
        await seesTerminal(terminal);
        terminal.talk.say('exit 0\n');
        assert.equal(await terminal.talk.ends(), '0', terminal.talk.out);
        await cluster.phase('tty', 'Succeeded');
        await removePods(cluster.plane, 'tty');
      });

      it('exec uses no terminal by default, separates input, output and errors, and returns the exit code', async () => {
        await put('exec-plain', podSpec([container('main')]));
        const command = 'test -t 0 && exit 1; cat; echo aside >&2; exit 9';
        const child = cluster.plane.spawnKubectl('exec', '-i', 'exec-plain', '--', 'sh', '-c', command);
        const { stdin, stdout, stderr } = child;
        assert.ok(stdin !== null && stdout !== null && stderr !== null);
        const closed = new Promise((resolve) => child.once('close', resolve));
        const much = 'some line\n'.repeat(100_000);
        stdin.end(much);
        const [code, out, aside] = await Promise.all([closed, text(stdout), text(stderr)]);
        assert.equal(code, 9);
        assert.ok(out === much, `${out.length} of ${much.length} characters came back`);
        assert.match(aside, /^aside\n/);
        await removePods(cluster.plane, 'exec-plain');
      });

      it('cp copies a file into a container and back', async () => {
        await put('copies', podSpec([container('main')]));
        const dir = await mkdtemp(join(tmpdir(), 'klg-copies-'));
        try {
          const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 251));
          await writeFile(join(dir, 'there'), bytes);
          await cluster.plane.kubectl('cp', join(dir, 'there'), 'copies:/tmp/file');
          await cluster.plane.kubectl('cp', 'copies:/tmp/file', join(dir, 'back'));
          assert.deepEqual(await readFile(join(dir, 'back')), bytes);
        } finally {
          await rm(dir, { recursive: true, force: true });
        }
        await removePods(cluster.plane, 'copies');
      });

      it('port-forward transfers data both ways over sequential connections', async () => {
        const readinessProbe = { tcpSocket: { port: 8_080 }, periodSeconds: 1 };
        await put('serves', podSpec([shell('exec nc -ll -p 8080 -e cat', { readinessProbe })]));
        await using forward = kubectl('port-forward', 'pod/serves', ':8080');
        await forward.says(/127\.0\.0\.1:\d+ -> 8080/);
        const port = Number(/127\.0\.0\.1:(\d+)/.exec(forward.out)?.[1]);
        for (const word of ['one', 'two'.repeat(100_000)]) {
          const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
          socket.end(word);
          assert.equal(await text(socket), word);
        }
        await removePods(cluster.plane, 'serves');
      });

      it('debug adds an ephemeral container that sees the processes of the other containers', async () => {
        await put('debugged', podSpec([container('main')]));
        const image = `--image=${cluster.node.image}`;
        const looks =
          'while read -r word; do tr "\\0" " " < /proc/1/cmdline; [ "$word" = go ] || exit 0; done';
        const command = ['sh', '-c', looks];
        const flags = ['-i', '--target=main', '--profile=general', image, '--container=looks'];
        await using debug = kubectl('debug', 'debugged', ...flags, '--', ...command);
        await debug.asks('go\n', /sh -c trap/);
        debug.say('end\n');
        assert.equal(await debug.ends(), '0', debug.out);
        await cluster.podIs(
          'debugged',
          'debugged',
          ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode === 0,
        );
        await removePods(cluster.plane, 'debugged');
      });

      it('logs returns the log of the previous container, the last lines, and new lines with -f', async () => {
        const tells = shell(
          'echo begins; echo told; [ -e /dir/was ] || { touch /dir/was; exit 1; }; read -r x; echo "$x"',
          {
            stdin: true,
            volumeMounts: [{ name: 'dir', mountPath: '/dir' }],
          },
        );
        await put('tells', podSpec([tells], { volumes: [{ name: 'dir', emptyDir: {} }] }));
        await cluster.podIs(
          'tells',
          'restarted',
          ({ status }) =>
            status?.containerStatuses?.[0]?.restartCount === 1 && status.containerStatuses[0].ready,
        );
        assert.equal(await cluster.plane.kubectl('logs', 'tells', '--previous'), 'begins\ntold\n');
        assert.equal(await cluster.plane.kubectl('logs', 'tells', '--tail=1'), 'told\n');
        await using follows = kubectl('logs', '-f', 'tells');
        await follows.says(/told\n/);
        await using attached = kubectl('attach', '-i', 'tells');
        attached.say('and this\n');
        await follows.says(/and this\n/);
        assert.equal(await follows.ends(), '0', follows.out);
        await removePods(cluster.plane, 'tells');
      });

      it('describe shows a pod with its events', async () => {
        await put('described', podSpec([container('main')]));
        // The events of a successful start are published a moment after it.
        const started = /Normal\s+Started\s.*kubelet\s+(Started container main|Container started)/;
        const reported = await eventually('its start to be told', async () => {
          const all = await cluster.plane.kubectl('describe', 'pod', 'described');
          return started.test(all) ? all : undefined;
        });
        assert.match(reported, /Status:\s+Running/);
        assert.match(await cluster.plane.kubectl('describe', 'node', cluster.node.name), /Ready\s+True/);
        await removePods(cluster.plane, 'described');
      });
    });
  });
}

/**
 * Checks, in the shell that runs in a terminal, that its standard streams are the terminal and that
 * the size follows each resize.
 */
async function seesTerminal(terminal: Terminal): Promise<void> {
  const { talk } = terminal;
  // Computes a sum, because the terminal echoes the input: only the output contains the result.
  await talk.asks('test -t 0 && test -t 1 && test -t 2 && echo terminal $((40 + 2))\n', /terminal 42/);
  // Resizes only after kubectl has connected, because kubectl ignores earlier changes of the window
  // size.
  await terminal.resize(33, 101);
  talk.say('until [ "$(stty size)" = "33 101" ]; do sleep 0.1; done; echo size $((3 + 4))\n');
  await talk.says(/size 7/);
  await terminal.resize(44, 120);
  talk.say('until [ "$(stty size)" = "44 120" ]; do sleep 0.1; done; echo larger $((5 + 6))\n');
  await talk.says(/larger 11/);
}
