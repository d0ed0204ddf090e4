import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import grpc from '@grpc/grpc-js';
import { busyboxImageName } from '../../src/containerd/index.ts';
import type { ContainerStatus, PodStatus, Probe } from '../../src/kinds/index.ts';
import { realClock, systemRandom } from '../../src/lib/index.ts';
import { HealthCheckRequest, HealthCheckResponse } from '../../src/probes/gen/health.ts';
import { networkProber, type ProbeRequest, type ProbeResponse } from '../../src/probes/index.ts';
import { InProcessNode } from '../in-process-node.ts';
import { KubelingNode } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

/** A container script that runs until SIGTERM and then exits immediately. */
const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';
const quick: Probe = { periodSeconds: 1, timeoutSeconds: 5 };
const always = { restartPolicy: 'Always' };
const { signal } = new AbortController();

const main = ({ containerStatuses = [] }: PodStatus): ContainerStatus | undefined => containerStatuses[0];
const isReady = ({ conditions = [] }: PodStatus) =>
  conditions.some(({ type, status }) => type === 'Ready' && status === 'True');

/** An HTTP server of this process that responds to probes with a status the test sets. */
class Answerer implements AsyncDisposable {
  readonly #server: Server;
  status = 200;

  static async open(): Promise<Answerer> {
    const answerer = new Answerer();
    await new Promise<void>((resolve) => answerer.#server.listen(0, '127.0.0.1', resolve));
    return answerer;
  }

  private constructor() {
    this.#server = createServer((_request, response) => {
      response.statusCode = this.status;
      response.end();
    });
  }

  get probe(): Probe {
    const { port } = this.#server.address() as AddressInfo;
    return { ...quick, httpGet: { host: '127.0.0.1', port, path: '/' }, failureThreshold: 1 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

type Health = HealthCheckResponse['status'] | 'silent';

/** A gRPC health server of grpc-js, on all addresses of the machine. */
async function healthServer(answer: () => Health) {
  const server = new grpc.Server();
  const method = {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: (value: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(value)),
    requestDeserialize: (bytes: Buffer) => HealthCheckRequest.decode(bytes),
    responseSerialize: (value: HealthCheckResponse) => Buffer.from(HealthCheckResponse.encode(value)),
    responseDeserialize: (bytes: Buffer) => HealthCheckResponse.decode(bytes),
  };
  const check = (_call: unknown, done: grpc.sendUnaryData<HealthCheckResponse>) => {
    const status = answer();
    if (status !== 'silent') done(null, { status });
  };
  server.addService({ check: method }, { check });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('0.0.0.0:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, [Symbol.dispose]: () => server.forceShutdown() };
}

describe('probes on real containerd', { timeout: 300_000, skip: skipReason() }, () => {
  const responses: {
    readonly question: ProbeRequest;
    readonly answer: ProbeResponse;
    readonly atMs: number;
  }[] = [];
  let node: InProcessNode;

  before(async () => {
    node = await InProcessNode.open({
      aroundDeps: (deps) => {
        const { dialHttp } = deps.machine;
        const real = networkProber({ clock: realClock(), random: systemRandom(), dialHttp });
        const prober = {
          async probe(question: ProbeRequest, inner: AbortSignal) {
            const response = await real.probe(question, inner);
            responses.push({ question, answer: response, atMs: performance.now() });
            return response;
          },
        };
        return { ...deps, machine: { ...deps.machine, prober } };
      },
    });
  });

  after(async () => {
    await node[Symbol.asyncDispose]();
  });

  it('a container that fails its liveness probe is restarted', async () => {
    const script = `touch /tmp/ok; (sleep 3; rm /tmp/ok) & ${stays}`;
    const livenessProbe = { ...quick, exec: { command: ['cat', '/tmp/ok'] }, failureThreshold: 2 };
    await node.put({ live: { spec: always, containers: { main: { script, livenessProbe } } } });
    const { status } = await node.podIs('live', 'restarted', (seen) => main(seen)?.restartCount === 1);
    assert.equal(main(status)?.lastState?.terminated?.exitCode, 0);
    const unhealthy = node.events('live').filter(({ reason }) => reason === 'Unhealthy');
    assert.deepEqual(
      unhealthy.slice(0, 2).map(({ message, fieldPath }) => [message, fieldPath]),
      [1, 2].map((count) => [
        `Liveness probe failed: cat: can't open '/tmp/ok': No such file or directory (${count}/2)`,
        'spec.containers{main}',
      ]),
    );
    const killing = node.events('live').find(({ reason }) => reason === 'Killing');
    assert.equal(killing?.message, 'Container main failed liveness probe, will be restarted');
    await node.take('live');
  });

  it('the grace period of the probe takes precedence over that of the pod', async () => {
    const deaf = 'touch /kept/begun; trap "" TERM; while true; do sleep 0.1; done';
    const script = `[ -e /kept/begun ] || { ${deaf}; }; ${stays}`;
    const volumeMounts = [{ name: 'kept', mountPath: '/kept' }];
    const livenessProbe = {
      ...quick,
      exec: { command: ['false'] },
      failureThreshold: 1,
      terminationGracePeriodSeconds: 1,
    };
    const spec = { ...always, terminationGracePeriodSeconds: 120, volumes: [{ name: 'kept', emptyDir: {} }] };
    await node.put({ stubborn: { spec, containers: { main: { script, livenessProbe, volumeMounts } } } });
    const { status } = await node.podIs(
      'stubborn',
      'restarted',
      (seen) => (main(seen)?.restartCount ?? 0) > 0,
    );
    assert.equal(main(status)?.lastState?.terminated?.exitCode, 137);
    await node.take('stubborn');
  });

  it('only the startup probe runs before a container has started', async () => {
    await using answerer = await Answerer.open();
    answerer.status = 500;
    const { probe } = answerer;
    const startupProbe = { ...probe, failureThreshold: 100 };
    const main_ = { script: stays, startupProbe, readinessProbe: probe, livenessProbe: probe };
    await node.put({ slow: { spec: always, containers: { main: main_ } } });
    const typesOf = () =>
      new Set(
        responses
          .filter(({ question }) => question.podName.startsWith('slow-'))
          .map(({ question }) => question.type),
      );
    await node.podIs('slow', 'running and probed', () => typesOf().size > 0);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.deepEqual([...typesOf()], ['startup']);
    assert.deepEqual(
      [main(node.pod('slow')?.status ?? {})?.started, isReady(node.pod('slow')?.status ?? {})],
      [false, false],
    );
    answerer.status = 200;
    const { status } = await node.podIs('slow', 'ready', isReady);
    assert.deepEqual([main(status)?.started, main(status)?.restartCount], [true, 0]);
    await node.podIs('slow', 'asked all', () => typesOf().size === 3);
    await node.take('slow');
  });

  it('readiness changes appear in the pod status within 200 ms of the probe response, in both directions', async () => {
    await using answerer = await Answerer.open();
    await node.put({
      flip: { spec: always, containers: { main: { script: stays, readinessProbe: answerer.probe } } },
    });
    await node.podIs('flip', 'ready', isReady);
    const lateMs: number[] = [];
    for (const ready of [false, true, false, true]) {
      let changedMs: number | undefined;
      using _listener = node.kubelet.state.statuses.onChange(({ pod, after: now }) => {
        if (pod.metadata.name.startsWith('flip-') && isReady(now) === ready) changedMs ??= performance.now();
      });
      const from = responses.length;
      answerer.status = ready ? 200 : 503;
      await node.podIs('flip', ready ? 'ready' : 'not ready', (seen) => isReady(seen) === ready);
      const expected = ready ? 'success' : 'failure';
      const responded = responses
        .slice(from)
        .find(({ question, answer }) => question.podName.startsWith('flip-') && answer.is === expected);
      lateMs.push((changedMs ?? Number.POSITIVE_INFINITY) - (responded?.atMs ?? 0));
    }
    // One status update may be late because the machine is busy.
    const late = lateMs.filter((ms) => ms >= 200);
    assert.ok(late.length <= 1, `${lateMs.map((ms) => ms.toFixed(1)).join(', ')} ms`);
    const { status } = node.pod('flip') ?? {};
    assert.equal(main(status ?? {})?.restartCount, 0);
    await node.take('flip');
  });

  it('pods are probed at their pod IP by port name, and at TCP ports', async () => {
    const script = `mkdir -p /www && echo ok > /www/up && httpd -p 8080 -h /www; ${stays}`;
    const ports = [{ name: 'web', containerPort: 8080 }];
    const readinessProbe = { ...quick, httpGet: { port: 'web', path: '/up' } };
    const livenessProbe = { ...quick, tcpSocket: { port: 8080 } };
    await node.put({
      web: { spec: always, containers: { main: { script, ports, readinessProbe, livenessProbe } } },
    });
    await node.podIs('web', 'ready', isReady);
    const uid = node.pod('web')?.metadata.uid ?? '';
    const page = () => node.kubelet.runtime.probes.metrics.expose(signal);
    await node.podIs('web', 'probed by both', () =>
      ['http', 'tcp'].every((kind) =>
        responses.some(({ question }) => question.podUid === uid && question.action.kind === kind),
      ),
    );
    assert.match(
      await page(),
      new RegExp(
        `prober_probe_total\\{probe_type="Readiness",result="successful",container="main",.*pod_uid="${uid}"\\}`,
      ),
    );
    await node.take('web');
  });

  it('an exec probe fails when its command takes too long', async () => {
    const readinessProbe = { periodSeconds: 1, timeoutSeconds: 1, exec: { command: ['sleep', '30'] } };
    await node.put({ late: { spec: always, containers: { main: { script: stays, readinessProbe } } } });
    const message = await node.event('late', 'Unhealthy');
    assert.equal(message, 'Readiness probe failed: command timed out: "sleep" timed out after 1s (1/3)');
    const { status } = node.pod('late') ?? {};
    assert.deepEqual([main(status ?? {})?.ready, main(status ?? {})?.restartCount], [false, 0]);
    await node.take('late');
  });

  it('an exec probe fails in time when a child of its command keeps the output open, and starts no second command', async () => {
    const command = ['sh', '-c', 'sleep 60 & exit 0'];
    const readinessProbe = { periodSeconds: 1, timeoutSeconds: 1, exec: { command } };
    await node.put({ held: { spec: always, containers: { main: { script: stays, readinessProbe } } } });
    const told = () => node.events('held').filter(({ reason }) => reason === 'Unhealthy');
    await node.podIs('held', 'reported twice', () => told().length > 1);
    assert.match(
      told()[0]?.message ?? '',
      /^Readiness probe failed: command timed out: .* timed out after 1s/,
    );
    assert.match(told()[1]?.message ?? '', /of an earlier probe still runs \(2\/3\)$/);
    assert.equal(node.kubelet.endpoints.entryCounts()['probes.commands'], 1);
    assert.equal(main(node.pod('held')?.status ?? {})?.ready, false);
    await node.take('held');
  });

  it('a gRPC probe distinguishes a service that is serving, is not serving and does not respond', async () => {
    let health: Health = 'SERVING';
    using server = await healthServer(() => health);
    const readinessProbe = {
      periodSeconds: 1,
      timeoutSeconds: 1,
      failureThreshold: 1,
      grpc: { port: server.port, service: '' },
    };
    const spec = { ...always, hostNetwork: true };
    await node.put({ rpc: { spec, containers: { main: { script: stays, readinessProbe } } } });
    await node.podIs('rpc', 'ready', isReady);
    const said = (text: string) =>
      node
        .events('rpc')
        .some(
          ({ reason, message }) =>
            reason === 'Unhealthy' && message === `Readiness probe failed: ${text} (1/1)`,
        );
    health = 'NOT_SERVING';
    const unhealthy = 'service unhealthy (responded with "NOT_SERVING")';
    await node.podIs('rpc', 'not ready', (seen) => !isReady(seen) && said(unhealthy));
    health = 'silent';
    await node.podIs('rpc', 'reported as late', () => said('timeout: health rpc did not complete within 1s'));
    health = 'SERVING';
    await node.podIs('rpc', 'ready again', isReady);
    await node.take('rpc');
  });

  it('after a restart of the kubelet a container is not reported as ready until a probe has verified it', async () => {
    await using answerer = await Answerer.open();
    const { probe } = answerer;
    await node.put({
      good: {
        spec: always,
        containers: { main: { script: stays, readinessProbe: probe, startupProbe: probe } },
      },
      bad: {
        spec: always,
        containers: { main: { script: stays, readinessProbe: { ...quick, exec: { command: ['false'] } } } },
      },
    });
    await node.podIs('good', 'ready', isReady);
    await node.podIs('bad', 'running', (seen) => main(seen)?.state?.running !== undefined);
    await node.stop();
    await node.start();
    const observed = new Set<string>();
    using _listener = node.kubelet.state.statuses.onChange(({ pod, after: now }) => {
      if (main(now)?.state?.running !== undefined)
        observed.add(`${pod.metadata.name.split('-')[0]} ${main(now)?.started} ${isReady(now)}`);
    });
    const from = responses.length;
    await node.podIs('good', 'asked again', () =>
      responses.slice(from).some(({ question }) => question.podName.startsWith('good-')),
    );
    await node.podIs('bad', 'there', (now) => main(now)?.state?.running !== undefined);
    assert.deepEqual([...observed].toSorted(), ['bad true false', 'good true true']);
    await node.take('good', 'bad');
  });

  it('probes of deleted pods leave no state', async () => {
    await node.clear();
    const probesHeld = () =>
      Object.entries(node.kubelet.endpoints.entryCounts()).filter(
        ([room, count]) => room.startsWith('probes') && count !== 0,
      );
    const end = performance.now() + 120_000;
    while (probesHeld().length > 0 && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(probesHeld(), []);
  });
});

describe('probes after kubeling is killed', { timeout: 180_000, skip: skipReason() }, () => {
  it('a restarted kubeling reports no unverified readiness and restarts no container', async () => {
    await using answerer = await Answerer.open();
    const node = await KubelingNode.open();
    try {
      const { probe } = answerer;
      const container = {
        name: 'main',
        image: busyboxImageName,
        command: ['sh', '-c', stays],
        readinessProbe: { ...probe, periodSeconds: 3 },
        livenessProbe: { ...probe, failureThreshold: 3 },
      };
      const spec = { terminationGracePeriodSeconds: 2, containers: [container] };
      await node.put('web.yaml', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec });
      await node.podIs('web', 'ready', isReady);
      for (let round = 0; round < 2; round++) {
        await node.end('SIGKILL');
        await node.start();
        const observed = new Set<boolean>();
        const end = performance.now() + 5_000;
        while (performance.now() < end) {
          const status = (await node.pod('web'))?.status ?? {};
          if (main(status)?.state?.running !== undefined) observed.add(isReady(status));
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        assert.deepEqual([...observed], [true]);
      }
      const { status } = (await node.pod('web')) ?? { status: {} };
      assert.equal(main(status)?.restartCount, 0);
      assert.match(
        await node.get('/metrics/probes'),
        /prober_probe_total\{probe_type="Readiness",result="successful"/,
      );
      assert.match(await node.get('/metrics/probes'), /prober_probe_duration_seconds_bucket/);
      answerer.status = 500;
      await node.podIs('web', 'not ready', (now) => !isReady(now));
      assert.match(
        await node.command('explain', 'web'),
        /Unhealthy.*Readiness probe failed: HTTP probe failed with statuscode: 500/,
      );
    } finally {
      assert.deepEqual(await node.leave(), []);
    }
  });
});
