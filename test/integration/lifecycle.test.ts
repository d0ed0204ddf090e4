import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { writeFileAtomic } from '../../src/lib/index.ts';
import { podUid } from '../../src/pods/index.ts';
import { eventually } from '../kubeling-node.ts';
import { ApiNode, runsUntilSigterm } from './api-node.ts';
import { ctr, skipReason } from './containerd-fixture.ts';

const say = (word: string) => `echo ${word} >> /shared/told`;
const skip = skipReason();

describe('container lifecycle on containerd', { skip, timeout: 180_000 }, () => {
  let node: ApiNode;

  before(async () => {
    node = await ApiNode.open();
  });

  after(async () => {
    await node[Symbol.asyncDispose]();
  });

  /**
   * Gives the image of the test pods a second name in containerd; returns the name when the runtime
   * lists it.
   */
  async function anotherImage(name: string): Promise<string> {
    const { runtime } = node.inner;
    const other = `localhost/kubeling/${name}:1`;
    await ctr(runtime.containerd, 'images', 'tag', runtime.image, other);
    await eventually(
      'the image to be listed',
      async () =>
        (await runtime.cri.imageStatus({ image: { image: other } }, new AbortController().signal)).image,
    );
    return other;
  }

  describe('init containers', { concurrency: true }, () => {
    it('init containers run sequentially before the main containers', async () => {
      node.add('order', {
        init: {
          first: { script: `sleep 0.3; ${say('first')}` },
          second: { script: `sleep 0.1; ${say('second')}` },
          third: { script: say('third') },
        },
        containers: { main: { script: `${say('main')}; ${runsUntilSigterm}` } },
      });
      await node.running('order');
      await eventually('all to have reported', async () =>
        (await node.lines('order')).length === 4 ? true : undefined,
      );
      assert.deepEqual(await node.lines('order'), ['first', 'second', 'third', 'main']);
      const { initContainerStatuses = [], phase } = node.status('order');
      assert.equal(phase, 'Running');
      assert.deepEqual(
        initContainerStatuses.map(({ name, state, ready }) => [name, state?.terminated?.reason, ready]),
        [
          ['first', 'Completed', true],
          ['second', 'Completed', true],
          ['third', 'Completed', true],
        ],
      );
    });

    it('a failed init container is restarted under restartPolicy Always while later containers wait', async () => {
      node.add('always', { init: { fails: { script: 'exit 7' } }, containers: { main: {} } });
      const status = await node.is(
        'always',
        'waiting for the next attempt',
        () => node.container('always', 'fails')?.state?.waiting?.reason === 'CrashLoopBackOff',
      );
      assert.equal(status.phase, 'Pending');
      assert.equal(status.initContainerStatuses?.[0]?.lastState?.terminated?.exitCode, 7);
      assert.equal(node.container('always')?.state?.waiting?.reason, 'PodInitializing');
    });

    it('init containers are restarted under restartPolicy OnFailure until they succeed', async () => {
      node.add('onfailure', {
        restartPolicy: 'OnFailure',
        init: { fails: { script: '[ -e /shared/once ] || { touch /shared/once; exit 4; }' } },
        containers: { main: { script: 'exit 0' } },
      });
      const status = await node.is('onfailure', 'over', ({ phase }) => phase === 'Succeeded');
      assert.equal(status.initContainerStatuses?.[0]?.restartCount, 1);
    });

    it('a failed init container fails the pod under restartPolicy Never', async () => {
      node.add('never', {
        restartPolicy: 'Never',
        init: { fails: { script: 'exit 5' }, after: { script: say('after') } },
        containers: { main: { script: say('main') } },
      });
      const status = await node.is('never', 'over', ({ phase }) => phase === 'Failed');
      assert.equal(status.initContainerStatuses?.[0]?.state?.terminated?.exitCode, 5);
      assert.deepEqual(await node.lines('never'), []);
    });
  });

  describe('sidecars', { concurrency: true }, () => {
    const sidecar = { restartPolicy: 'Always' };
    const tells = (name: string) =>
      `trap "echo -${name} >> /shared/told; exit 0" TERM; ${say(`+${name}`)}; while true; do sleep 0.05; done`;

    it('sidecars start before the main container and stop after it in reverse order', async () => {
      node.add('sides', {
        init: { one: { ...sidecar, script: tells('one') }, two: { ...sidecar, script: tells('two') } },
        containers: {
          main: {
            script: `trap "sleep 1; echo -main >> /shared/told; exit 0" TERM; ${say('+main')}; while true; do sleep 0.05; done`,
          },
        },
      });
      await eventually('all to run', async () =>
        (await node.lines('sides')).length === 3 ? true : undefined,
      );
      node.delete('sides', 10);
      await node.terminated('sides');
      const reported = await node.lines('sides');
      assert.equal(reported.indexOf('+main'), 2);
      assert.deepEqual(reported.slice(3), ['-main', '-two', '-one']);
    });

    it('a sidecar restarts without restarting the other containers', async () => {
      node.add('alone', {
        init: {
          side: {
            ...sidecar,
            script: `[ -e /shared/once ] || { touch /shared/once; sleep 1; exit 3; }; ${runsUntilSigterm}`,
          },
        },
        containers: { main: {} },
      });
      const { containerID } = await node.running('alone');
      await node.until('the sidecar to run again', 'alone', () => {
        const { restartCount, state } = node.container('alone', 'side') ?? {};
        return restartCount === 1 && state?.running !== undefined ? true : undefined;
      });
      const main = node.container('alone');
      assert.deepEqual([main?.containerID, main?.restartCount], [containerID, 0]);
      assert.equal(node.container('alone', 'side')?.lastState?.terminated?.exitCode, 3);
    });

    it('sidecars do not keep a pod running after its main container has finished', async () => {
      node.add('finished', {
        restartPolicy: 'Never',
        init: { side: { ...sidecar, script: tells('side') } },
        containers: { main: { script: 'sleep 0.5' } },
      });
      await node.is('finished', 'over', ({ phase }) => phase === 'Succeeded');
      assert.notEqual(node.container('finished', 'side')?.state?.terminated, undefined);
      assert.deepEqual(await node.lines('finished'), ['+side', '-side']);
    });
  });

  describe('container exits', { concurrency: true }, () => {
    it('an ephemeral container joins a running pod, shares the process namespace of its target container and is not restarted', async () => {
      node.add('debug', { containers: { main: {} } });
      const { containerID } = await node.running('debug');
      const script = 'ps | grep -q "[w]hile true" && echo saw >> /shared/told; exit 3';
      node.addEphemeral('debug', { name: 'shell', script, targetContainerName: 'main' });
      const { exitCode } = await node.exited('debug', 'shell');
      assert.equal(exitCode, 3);
      assert.deepEqual(await node.lines('debug'), ['saw']);
      const main = node.container('debug');
      assert.deepEqual([main?.containerID, main?.state?.running !== undefined], [containerID, true]);
      assert.equal(node.container('debug', 'shell')?.restartCount, 0);
    });

    it('a container over its memory limit is OOMKilled with 137', async () => {
      node.add('oom', {
        restartPolicy: 'Never',
        containers: { main: { script: 'tail /dev/zero', resources: { limits: { memory: '24Mi' } } } },
      });
      const { exitCode, reason } = await node.exited('oom');
      assert.deepEqual([exitCode, reason], [137, 'OOMKilled']);
      // The event differs by which of the two cgroups, the container's or the pod's, reached the
      // limit first.
      const reported =
        /^OOMKilling: Container main (reached its memory limit|.* its pod reached its limit): .* process tail$/;
      await eventually('the event', async () => node.events('oom').find((event) => reported.test(event)));
    });

    it('reports the exit code and the termination message of a container', async () => {
      node.add('codes', {
        restartPolicy: 'Never',
        containers: {
          main: { script: 'echo why > /dev/termination-log; exit 42' },
          logs: { script: 'echo last words; exit 1', terminationMessagePolicy: 'FallbackToLogsOnError' },
          fine: { script: 'exit 0' },
          killed: { script: 'sleep 50 & kill -TERM $!; wait $!' },
        },
      });
      const status = await node.is('codes', 'over', ({ phase }) => phase === 'Failed');
      const ends = status.containerStatuses?.map(({ name, state }) => {
        const { exitCode, reason, message } = state?.terminated ?? {};
        return [name, exitCode, reason, message?.trim()];
      });
      assert.deepEqual(ends?.toSorted(), [
        ['fine', 0, 'Completed', undefined],
        ['killed', 143, 'Error', undefined],
        ['logs', 1, 'Error', 'last words'],
        ['main', 42, 'Error', 'why'],
      ]);
    });

    it('reports a container whose command does not exist as StartError with exit code 128 and the name of the command', async () => {
      node.add('nocommand', {
        restartPolicy: 'Never',
        containers: { main: { command: ['/no/such/program'] } },
      });
      node.add('norestart', { containers: { main: { command: ['/no/such/program'] } } });
      const status = await node.is('nocommand', 'over', ({ phase }) => phase === 'Failed');
      const { exitCode, reason, message = '' } = status.containerStatuses?.[0]?.state?.terminated ?? {};
      assert.deepEqual([exitCode, reason], [128, 'StartError']);
      assert.match(message, /\/no\/such\/program.*no such file or directory/s);
      assert.ok(node.events('nocommand').some((event) => /^Failed: Error: .*no such file/s.test(event)));
      await node.until('it to wait', 'norestart', () =>
        /RunContainerError|CrashLoopBackOff/.test(node.container('norestart')?.state?.waiting?.reason ?? '')
          ? true
          : undefined,
      );
      const last = await node.exited('norestart');
      assert.deepEqual([last.exitCode, last.reason], [128, 'StartError']);
    });

    it('restarts an exited container immediately, then after ten seconds', async () => {
      node.add('crash', {
        containers: { main: { script: 'cut -d" " -f1 /proc/uptime >> /shared/told; exit 1' } },
      });
      await node.is(
        'crash',
        'waiting',
        () => node.container('crash')?.state?.waiting?.reason === 'CrashLoopBackOff',
      );
      assert.match(
        node.container('crash')?.state?.waiting?.message ?? '',
        /^back-off 10s restarting failed container=main pod=crash_default\(/,
      );
      const lines = await node.until('a third start', 'crash', async () => {
        const reported = await node.lines('crash');
        return reported.length >= 3 ? reported : undefined;
      });
      const [first = 0, second = 0, third = 0] = lines.map(Number);
      assert.ok(second - first < 9, `immediately: ${second - first} s`);
      assert.ok(third - second > 9.5, `after ten seconds: ${third - second} s`);
      assert.ok(
        node
          .events('crash')
          .some((event) =>
            event.startsWith('BackOff: Back-off restarting failed container main in pod crash_'),
          ),
      );
    });

    it('applies the restart policy and restart rules of a container', async () => {
      const once = (code: number) => `[ -e /shared/$0 ] || { touch /shared/$0; exit ${code}; }`;
      node.add('rules', {
        restartPolicy: 'Never',
        containers: {
          ruled: {
            command: ['sh', '-c', `${once(42)}; exit 0`, 'ruled'],
            restartPolicy: 'Never',
            restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
          },
          own: { command: ['sh', '-c', once(1), 'own'], restartPolicy: 'OnFailure' },
          plain: { script: 'exit 0' },
        },
      });
      const status = await node.is('rules', 'over', ({ phase }) => phase === 'Succeeded');
      assert.deepEqual(
        status.containerStatuses?.map(({ name, restartCount }) => [name, restartCount]).toSorted(),
        [
          ['own', 1],
          ['plain', 0],
          ['ruled', 1],
        ],
      );
    });

    it('restarts only the container whose image changed', async () => {
      const other = await anotherImage('other');
      node.add('images', { containers: { main: {}, beside: {} } });
      await node.running('images');
      const { containerID } = await node.running('images', 'beside');
      node.change('images', (pod) => ({
        ...pod,
        spec: {
          ...pod.spec,
          containers: pod.spec.containers.map((each) =>
            each.name === 'main' ? { ...each, image: other } : each,
          ),
        },
      }));
      await node.until('it to run again', 'images', () => {
        const { restartCount, state, image } = node.container('images') ?? {};
        return restartCount === 1 && state?.running !== undefined ? image : undefined;
      });
      assert.ok(
        node.events('images').includes('Killing: Container main definition changed, will be restarted'),
      );
      const beside = node.container('images', 'beside');
      assert.deepEqual([beside?.containerID, beside?.restartCount], [containerID, 0]);
    });

    it('restarts a changed container of a static pod with a fixed UID in the same sandbox when its image changes', async () => {
      const other = await anotherImage('fixed');
      const { runtime, kubelet } = node.inner;
      const uid = 'fixed-uid';
      const write = (image: string) => {
        const container = {
          name: 'main',
          image,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', runsUntilSigterm],
        };
        const spec = { terminationGracePeriodSeconds: 2, containers: [container] };
        const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'fixed', uid }, spec };
        return writeFileAtomic(node.inner.path('manifests', 'fixed.json'), JSON.stringify(pod), {
          mode: 0o600,
        });
      };
      const runs = (restarts: number) =>
        eventually('the static pod to run', async () => {
          const [main] = kubelet.state.statuses.getPodStatus(podUid(uid))?.containerStatuses ?? [];
          return main?.restartCount === restarts && main.state?.running !== undefined ? true : undefined;
        });
      await write(runtime.image);
      await runs(0);
      await write(other);
      await runs(1);
      const { items } = await runtime.cri.listPodSandbox({}, new AbortController().signal);
      assert.equal(items.filter(({ metadata }) => metadata?.uid === uid).length, 1);
    });

    it('fails a pod that exceeds its active deadline', async () => {
      node.add('deadline', { activeDeadlineSeconds: 8, containers: { main: {} } });
      await node.running('deadline');
      const status = await node.is('deadline', 'over', ({ phase }) => phase === 'Failed');
      assert.equal(status.reason, 'DeadlineExceeded');
      assert.equal(status.message, 'Pod was active on the node longer than the specified deadline');
      const { exitCode } = await node.exited('deadline');
      assert.equal(exitCode, 0);
    });
  });
});
