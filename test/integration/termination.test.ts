import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { LifecycleHandler } from '../../src/kinds/index.ts';
import { eventually } from '../kubeling-node.ts';
import { ApiNode, type ContainerSketch, ignoresSigterm, runsUntilSigterm } from './api-node.ts';
import { skipReason } from './containerd-fixture.ts';

const skip = skipReason();
const shell = (script: string): LifecycleHandler => ({ exec: { command: ['sh', '-c', script] } });

describe('lifecycle hooks and termination of containers on containerd', { skip, timeout: 180_000 }, () => {
  let node: ApiNode;

  before(async () => {
    node = await ApiNode.open();
  });

  after(async () => {
    await node[Symbol.asyncDispose]();
  });

  const told = (name: string, count: number) =>
    eventually(`${name} to have reported ${count} things`, async () =>
      (await node.lines(name)).length >= count ? true : undefined,
    );

  /** Starts a pod of one container and waits until it runs. */
  async function runs(name: string, main: ContainerSketch, spec = {}): Promise<void> {
    node.add(name, {
      ...spec,
      containers: { main: { script: `echo up >> /shared/told; ${runsUntilSigterm}`, ...main } },
    });
    await node.running(name);
    await told(name, 1);
  }

  /** Deletes the pod; returns how many seconds its termination takes. */
  async function endTakes(name: string, graceSeconds: number): Promise<number> {
    const startMs = performance.now();
    node.delete(name, graceSeconds);
    await node.terminated(name);
    return (performance.now() - startMs) / 1_000;
  }

  /**
   * Asserts that a termination takes at least this long and at most 25 seconds longer, because a
   * busy machine is slow.
   */
  function assertLasts(name: string, seconds: number, least: number): void {
    const most = least + slackSeconds;
    const message = `${seconds} s must be between ${least} and ${most}
${node.describe(name)}`;
    assert.ok(seconds >= least && seconds <= most, message);
  }

  const listens = 'until netstat -ltn | grep -q :8080; do sleep 0.05; done; echo up >> /shared/told';
  const slackSeconds = 25;
  const ready = 'until [ -e /shared/ready ]; do sleep 0.05; done';
  const ignoring = { script: `echo up >> /shared/told; ${ignoresSigterm}` };

  describe('lifecycle hooks', { concurrency: true }, () => {
    it('a failed postStart hook stops the container, and its output is not reported', async () => {
      const postStart = shell('printf secret-%s word; exit 9');
      node.add('poststart', { containers: { main: { lifecycle: { postStart } } } });
      const events = await node.until('the failure to be reported', 'poststart', () => {
        const all = node.events('poststart');
        return all.some((event) => event.startsWith('Killing')) &&
          node.container('poststart')?.restartCount === 1
          ? all
          : undefined;
      });
      assert.ok(events.includes('FailedPostStartHook: PostStartHook failed'));
      assert.ok(events.includes('Killing: FailedPostStartHook'));
      assert.equal((await node.exited('poststart')).exitCode, 0);
      assert.doesNotMatch(node.describe('poststart'), /secret-word/);
      assert.match(JSON.stringify(node.inner.logs.records.toArray()), /secret-word/);
    });

    it('a postStart hook delays the start of the next container until it has ended', async () => {
      const postStart = shell('sleep 1; echo hook >> /shared/told');
      node.add('before', {
        containers: {
          main: { script: runsUntilSigterm, lifecycle: { postStart } },
          next: { script: `echo next >> /shared/told; ${runsUntilSigterm}` },
        },
      });
      await told('before', 2);
      assert.deepEqual(await node.lines('before'), ['hook', 'next']);
    });

    it('an endless postStart hook does not delay the termination of a pod', async () => {
      const postStart = shell(`${ready}; echo up >> /shared/told; sleep 1000`);
      node.add('hangs', {
        containers: {
          main: {
            script: `trap "exit 0" TERM; touch /shared/ready; ${runsUntilSigterm}`,
            lifecycle: { postStart },
          },
        },
      });
      await told('hangs', 1);
      assertLasts('hangs', await endTakes('hangs', 60), 0);
    });

    it('an endless postStart hook does not shorten the grace period of a container that ignores SIGTERM', async () => {
      const postStart = shell(`${ready}; echo up >> /shared/told; sleep 1000`);
      node.add('hangs-on', {
        containers: {
          main: { script: `trap "" TERM; touch /shared/ready; ${ignoresSigterm}`, lifecycle: { postStart } },
        },
      });
      await told('hangs-on', 1);
      assertLasts('hangs-on', await endTakes('hangs-on', 3), 2.5);
    });

    it('an httpGet hook calls the container itself', async () => {
      const httpGet = { port: 'web', path: '/bye?now', httpHeaders: [{ name: 'X-Why', value: 'end' }] };
      await runs('asked', {
        // An HTTP server that responds after it has recorded the complete request.
        script: `nc -l -p 8080 -e sh -c 'while read -r l; do echo "$l" >> /shared/asked; [ "\${#l}" -le 1 ] && break; done; printf "HTTP/1.0 500 Oh\\r\\nContent-Length: 0\\r\\n\\r\\n"' & ${listens}; ${runsUntilSigterm}`,
        ports: [{ name: 'web', containerPort: 8080 }],
        lifecycle: { preStop: { httpGet } },
      });
      await endTakes('asked', 10);
      const [first, ...headers] = (await node.lines('asked', 'asked')).map((line) => line.trim());
      assert.equal(first, 'GET /bye?now HTTP/1.1');
      const lower = headers.map((line) => line.toLowerCase());
      for (const header of ['user-agent: kube-lifecycle/1.36', 'accept: */*', 'x-why: end']) {
        assert.ok(lower.includes(header), headers.join('\n'));
      }
      assert.deepEqual(
        node.events('asked').filter((event) => event.startsWith('FailedPreStopHook')),
        [],
      );
    });

    it('an httpGet hook with HTTPS is retried over HTTP where the server does not support TLS', async () => {
      const httpGet = { port: 8080, scheme: 'HTTPS' };
      await runs('plain', {
        script: `httpd -p 8080; ${listens}; ${runsUntilSigterm}`,
        lifecycle: { preStop: { httpGet } },
      });
      await endTakes('plain', 3);
      const fallback = node.events('plain').filter((event) => event.startsWith('LifecycleHTTPFallback'));
      assert.equal(fallback.length, 1, node.describe('plain'));
      assert.match(
        fallback[0] ?? '',
        /^LifecycleHTTPFallback: request to HTTPS lifecycle hook [\d.]+:8080 got HTTP response, retry with HTTP succeeded$/,
      );
    });

    it('a failed preStop hook is reported and the container is stopped', async () => {
      await runs('failing', { lifecycle: { preStop: shell('exit 1') } });
      await runs('socket', { lifecycle: { preStop: { tcpSocket: { port: 80 } } } });
      for (const name of ['failing', 'socket']) {
        assertLasts(name, await endTakes(name, 60), 0);
        assert.ok(node.events(name).includes('FailedPreStopHook: PreStopHook failed'), node.describe(name));
      }
    });

    it('a sleep hook delays the termination', async () => {
      await runs('sleeps', { lifecycle: { preStop: { sleep: { seconds: 2 } } } });
      assertLasts('sleeps', await endTakes('sleeps', 60), 2);
      await runs('dozes', { lifecycle: { preStop: { sleep: { seconds: 0 } } } });
      assertLasts('dozes', await endTakes('dozes', 60), 0);
    });
  });

  describe('termination grace period', { concurrency: true }, () => {
    it('the grace period includes the time of the preStop hook', async () => {
      await runs('counted', {
        ...ignoring,
        lifecycle: { preStop: shell('sleep 2; echo hook >> /shared/told') },
      });
      assertLasts('counted', await endTakes('counted', 5), 4.5);
      assert.deepEqual(await node.lines('counted'), ['up', 'hook']);
      assert.equal((await node.exited('counted')).exitCode, 137);
    });

    it('a preStop hook that exceeds the grace period is ended, and the container has two seconds left', async () => {
      await runs('endless', { ...ignoring, lifecycle: { preStop: shell('sleep 1000') } });
      assertLasts('endless', await endTakes('endless', 2), 3.5);
    });

    it('a container that ignores SIGTERM is killed at the end of its grace period', async () => {
      await runs('ignoring', ignoring);
      assertLasts('ignoring', await endTakes('ignoring', 3), 2.5);
      const { exitCode, reason } = await node.exited('ignoring');
      assert.deepEqual([exitCode, reason], [137, 'Error']);
    });

    it('the grace period can be shortened while the container is being stopped', async () => {
      await runs('shorter', ignoring);
      const startMs = performance.now();
      node.delete('shorter', 600);
      await node.until('it to receive SIGTERM', 'shorter', () =>
        node.events('shorter').includes('Killing: Stopping container main') ? true : undefined,
      );
      node.delete('shorter', 300);
      node.delete('shorter', 2);
      await node.terminated('shorter');
      assertLasts('shorter', (performance.now() - startMs) / 1_000, 1.5);
      assert.equal(node.events('shorter').filter((event) => event.startsWith('Killing')).length, 1);
    });

    it('shortening the grace period while the preStop hook runs aborts the hook', async () => {
      await runs('hurried', { lifecycle: { preStop: shell('echo hook >> /shared/told; sleep 1000') } });
      const startMs = performance.now();
      node.delete('hurried', 600);
      await told('hurried', 2);
      node.delete('hurried', 1);
      await node.terminated('hurried');
      assertLasts('hurried', (performance.now() - startMs) / 1_000, 0.5);
      assert.deepEqual(await node.lines('hurried'), ['up', 'hook']);
    });

    it('a grace period of zero seconds still sends SIGTERM', async () => {
      await runs('zero', {}, { terminationGracePeriodSeconds: 0 });
      await runs('stubborn', ignoring, { terminationGracePeriodSeconds: 0 });
      const [fast, slow] = await Promise.all([endTakes('zero', 0), endTakes('stubborn', 0)]);
      assertLasts('zero', fast, 0);
      assertLasts('stubborn', slow, 1.5);
      assert.equal((await node.exited('zero')).exitCode, 0);
      assert.equal((await node.exited('stubborn')).exitCode, 137);
    });
  });

  describe('lifecycle hooks when kubeling is killed and restarted', () => {
    const untilTold = 'while [ ! -e /shared/go ]; do sleep 0.05; done; echo done >> /shared/told';
    const endless = { preStop: shell('echo hook >> /shared/told; sleep 1000') };
    const graceSeconds = 9;
    let deletedMs = 0;
    let initId: string | undefined;

    const secondsSince = () => (performance.now() - deletedMs) / 1_000;
    const letGo = (name: string) => writeFile(node.inner.path('shared', name, 'go'), '');

    /** All containers in the runtime whose pod name starts with the given name. */
    async function containersOf(name: string) {
      const { containers } = await node.inner.runtime.cri.listContainers({}, new AbortController().signal);
      return containers.filter(({ labels }) => labels['io.kubernetes.pod.name']?.startsWith(name));
    }

    before(async () => {
      const init = { waits: { script: `echo init >> /shared/told; ${untilTold}` } };
      node.add('initializing', {
        init,
        containers: { main: { script: `echo main >> /shared/told; ${runsUntilSigterm}` } },
      });
      const postStart = shell(`echo hook >> /shared/told; ${untilTold}`);
      node.add('starting', { containers: { main: { lifecycle: { postStart } } } });
      const path = node.inner.path('shared', 'static');
      await node.inner.put({
        static: {
          spec: {
            terminationGracePeriodSeconds: graceSeconds,
            volumes: [{ name: 'shared', hostPath: { path, type: 'DirectoryOrCreate' } }],
          },
          containers: {
            main: {
              ...ignoring,
              volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
              lifecycle: endless,
            },
          },
        },
      });
      await runs('stopping', { ...ignoring, lifecycle: endless });
      await runs('dozing', { lifecycle: { preStop: { sleep: { seconds: 6 } } } });
      initId = (await node.running('initializing', 'waits')).containerID;
      await Promise.all([told('starting', 1), told('static', 1)]);
      deletedMs = performance.now();
      node.delete('stopping', graceSeconds);
      node.delete('dozing', 60);
      await node.inner.take('static');
      await Promise.all([told('stopping', 2), told('static', 2)]);
      node.crash();
      await eventually('some time to pass', async () => (secondsSince() > 2 ? true : undefined));
      await node.start();
    });

    it('a restarted kubeling keeps a running init container running', async () => {
      assert.equal((await node.running('initializing', 'waits')).containerID, initId);
      await letGo('initializing');
      await node.running('initializing');
      await told('initializing', 3);
      assert.deepEqual(await node.lines('initializing'), ['init', 'done', 'main']);
      assert.equal(node.container('initializing', 'waits')?.containerID, initId);
    });

    it('a restarted kubeling repeats an unfinished postStart hook in the same container', async () => {
      await told('starting', 2);
      assert.deepEqual(await node.lines('starting'), ['hook', 'hook']);
      await letGo('starting');
      const { restartCount } = await node.running('starting');
      await told('starting', 3);
      assert.deepEqual([restartCount, (await containersOf('starting')).length], [0, 1]);
    });

    it('a restarted kubeling continues the sleep of a preStop hook for its remaining time', async () => {
      await node.terminated('dozing');
      assertLasts('dozing', secondsSince(), 5.9);
    });

    it('a restarted kubeling does not repeat a preStop hook, and counts the time it used toward the grace period', async () => {
      await node.terminated('stopping');
      assertLasts('stopping', secondsSince(), graceSeconds - 1);
      assert.deepEqual(await node.lines('stopping'), ['up', 'hook']);
    });

    it('a restarted kubeling neither repeats the preStop hook nor shortens the grace period of a pod whose manifest was deleted', async () => {
      await eventually('it to be deleted', async () => {
        const left = (await containersOf('static-')).filter(({ state }) => state === 'CONTAINER_RUNNING');
        return left.length === 0 ? true : undefined;
      });
      assert.ok(secondsSince() >= graceSeconds - 1, `${secondsSince()} s`);
      assert.deepEqual(await node.lines('static'), ['up', 'hook']);
    });
  });
});
