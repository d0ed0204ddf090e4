import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { container, pod, podIsGone, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { noCluster } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';
import { app, appPath, cronJob, job, jobPath, jobSpec, template } from './workload-objects.ts';

interface JobObject {
  readonly status?: {
    readonly active?: number;
    readonly succeeded?: number;
    readonly failed?: number;
    readonly conditions?: readonly { readonly type: string; readonly reason?: string }[];
  };
}

interface DeploymentObject {
  readonly status?: { readonly availableReplicas?: number };
}

describe('workloads on a node of a real cluster', { skip: noCluster(), timeout: 600_000 }, () => {
  let cluster: SmallCluster;

  before(async () => {
    cluster = await SmallCluster.open();
  });

  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  const rolledOut = (what: string) => cluster.plane.kubectl('rollout', 'status', what, '--timeout=240s');
  const jobIs = (name: string, condition: string) =>
    cluster.objectIs<JobObject>(
      jobPath(name),
      condition,
      ({ status }) => status?.conditions?.some(({ type }) => type === condition) === true,
    );
  const reasonOf = ({ status }: JobObject, condition: string) =>
    status?.conditions?.find(({ type }) => type === condition)?.reason;
  const podNames = async (label: string) =>
    (await cluster.podsWith(label)).map(({ metadata }) => metadata?.name ?? '');

  describe('workloads that run concurrently', { concurrency: true }, () => {
    it('runs a Job with the requested completions and parallelism', async () => {
      const spec = jobSpec('six', 'echo "$JOB_COMPLETION_INDEX"', {
        completions: 6,
        parallelism: 3,
        completionMode: 'Indexed',
      });
      await cluster.plane.apply(job('six', spec));
      let most = 0;
      const { status } = await cluster.objectIs<JobObject>(jobPath('six'), 'complete', (seen) => {
        most = Math.max(most, seen.status?.active ?? 0);
        return seen.status?.conditions?.some(({ type }) => type === 'Complete') === true;
      });
      assert.equal(status?.succeeded, 6);
      assert.ok(most <= 3, `${most} at a time`);
      const output = await Promise.all(
        (await podNames('app=six')).map((name) => cluster.plane.kubectl('logs', name)),
      );
      assert.deepEqual(output.toSorted(), ['0\n', '1\n', '2\n', '3\n', '4\n', '5\n']);
      await cluster.plane.kubectl('delete', 'job', 'six', '--cascade=foreground');
    });

    it('retries a Job whose pods fail up to its backoffLimit', async () => {
      await cluster.plane.apply(job('fails', jobSpec('fails', 'exit 5', { backoffLimit: 1 })));
      const failed = await jobIs('fails', 'Failed');
      assert.equal(reasonOf(failed, 'Failed'), 'BackoffLimitExceeded');
      assert.equal(failed.status?.failed, 2);
      const pods = await cluster.podsWith('app=fails');
      const codes = pods.map(
        ({ status }) => status?.containerStatuses?.[0]?.state?.terminated?.exitCode ?? -1,
      );
      assert.deepEqual(codes, [5, 5]);
      await cluster.plane.kubectl('delete', 'job', 'fails', '--cascade=foreground');
    });

    it('restarts the container of a Job in the same pod if the restart policy allows it', async () => {
      const volumes = [{ name: 'dir', emptyDir: {} }];
      const main = container('main', {
        command: ['sh', '-c', '[ -e /dir/was ] || { touch /dir/was; exit 1; }'],
        volumeMounts: [{ name: 'dir', mountPath: '/dir' }],
      });
      const spec = podSpec([main], { restartPolicy: 'OnFailure', volumes });
      await cluster.plane.apply(job('again', { template: template('again', spec) }));
      await jobIs('again', 'Complete');
      const [only, ...rest] = await cluster.podsWith('app=again');
      assert.deepEqual(rest, []);
      assert.equal(only?.status?.phase, 'Succeeded');
      assert.equal(only.status.containerStatuses?.[0]?.restartCount, 1);
      await cluster.plane.kubectl('delete', 'job', 'again', '--cascade=foreground');
    });

    it('terminates the pods of a Job that exceeds its deadline', async () => {
      await cluster.plane.apply(job('late', jobSpec('late', 'sleep 1000', { activeDeadlineSeconds: 3 })));
      const names = await patiently('a pod of the job', async () => {
        const found = await podNames('app=late');
        return found.length > 0 ? found : undefined;
      });
      assert.equal(reasonOf(await jobIs('late', 'Failed'), 'Failed'), 'DeadlineExceeded');
      for (const name of names) {
        await podIsGone(cluster.plane, name);
        await cluster.noContainersOf(name);
      }
      await cluster.plane.kubectl('delete', 'job', 'late');
    });

    it('removes a finished Job with its pods and their containers after its TTL', async () => {
      await cluster.plane.apply(job('passes', jobSpec('passes', 'true', { ttlSecondsAfterFinished: 1 })));
      const names = await patiently('a pod of the job', async () => {
        const found = await podNames('app=passes');
        return found.length > 0 ? found : undefined;
      });
      await patiently(
        'the job to be gone',
        async () => ((await cluster.plane.get(jobPath('passes'))) === undefined ? true : undefined),
        cluster.told,
      );
      for (const name of names) {
        await podIsGone(cluster.plane, name);
        await cluster.noContainersOf(name);
      }
    });

    it('runs a Job that was created manually from a CronJob', async () => {
      await cluster.plane.apply(cronJob('yearly', '0 0 1 1 *', jobSpec('yearly', 'echo now')));
      await cluster.plane.kubectl('create', 'job', '--from=cronjob/yearly', 'by-hand');
      await jobIs('by-hand', 'Complete');
      assert.equal(await cluster.plane.kubectl('logs', 'job/by-hand'), 'now\n');
      await cluster.plane.kubectl('delete', 'cronjob', 'yearly', '--cascade=foreground');
    });

    it('runs the pod of a DaemonSet, and replaces it after a change', async () => {
      await cluster.plane.apply(app('DaemonSet', 'everywhere'));
      await rolledOut('daemonset/everywhere');
      const [first = ''] = await podNames('app=everywhere');
      await cluster.plane.kubectl('set', 'env', 'daemonset/everywhere', 'EDITION=second');
      await rolledOut('daemonset/everywhere');
      await podIsGone(cluster.plane, first);
      const [second = '', ...rest] = await podNames('app=everywhere');
      assert.deepEqual(rest, []);
      const edition = await cluster.plane.kubectl('exec', second, '--', 'sh', '-c', 'echo $EDITION');
      assert.equal(edition, 'second\n');
      await cluster.plane.kubectl('delete', 'daemonset', 'everywhere', '--cascade=foreground');
      await cluster.noContainersOf(second);
    });

    it('sets the variables of a Service in containers that start after it, unless their pod disables them', async () => {
      const port = { name: 'http', port: 8_080 };
      const metadata = { name: 'the-web', namespace: 'default' };
      await cluster.plane.apply({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [port] } });
      const service = await cluster.plane.get<{ readonly spec: { readonly clusterIP: string } }>(
        '/api/v1/namespaces/default/services/the-web',
      );
      const says = container('main', {
        command: ['sh', '-c', 'env | grep -E "^(THE_WEB|KUBERNETES)_" | sort'],
      });
      const fields = { restartPolicy: 'Never' };
      await cluster.plane.apply(
        pod('linked', podSpec([says], fields)),
        pod('unlinked', podSpec([says], { ...fields, enableServiceLinks: false })),
      );
      for (const name of ['linked', 'unlinked']) await cluster.phase(name, 'Succeeded');
      const linked = await cluster.plane.kubectl('logs', 'linked');
      const address = service?.spec.clusterIP ?? 'none';
      for (const line of [
        'KUBERNETES_SERVICE_HOST=10.96.0.1',
        'KUBERNETES_SERVICE_PORT_HTTPS=443',
        `THE_WEB_SERVICE_HOST=${address}`,
        'THE_WEB_SERVICE_PORT_HTTP=8080',
        `THE_WEB_PORT_8080_TCP=tcp://${address}:8080`,
      ]) {
        assert.ok(linked.split('\n').includes(line), `${line} is not in\n${linked}`);
      }
      const unlinked = await cluster.plane.kubectl('logs', 'unlinked');
      assert.match(unlinked, /^KUBERNETES_SERVICE_HOST=10\.96\.0\.1$/m);
      assert.doesNotMatch(unlinked, /THE_WEB/);
      await cluster.plane.kubectl('delete', 'pod/linked', 'pod/unlinked', 'service/the-web');
    });

    it('starts the pods of a StatefulSet sequentially under their names', async () => {
      await cluster.plane.apply(app('StatefulSet', 'named', { replicas: 2, serviceName: 'named' }));
      await rolledOut('statefulset/named');
      const [zero, one] = await Promise.all([cluster.ready('named-0'), cluster.ready('named-1')]);
      assert.ok(Date.parse(readySince(zero)) <= Date.parse(one.metadata?.creationTimestamp ?? ''));
      await cluster.plane.kubectl('delete', 'pod', 'named-0');
      const isAnother = ({ metadata, status }: typeof zero) =>
        metadata?.uid !== zero.metadata?.uid && status?.containerStatuses?.[0]?.ready === true;
      await cluster.podIs('named-0', 'there again', isAnother);
      await cluster.plane.kubectl('set', 'env', 'statefulset/named', 'EDITION=second');
      await rolledOut('statefulset/named');
      await cluster.plane.kubectl('delete', 'statefulset', 'named', '--cascade=foreground');
    });
  });

  it('runs a Deployment of thirty pods, and rolls out a change with enough pods available all the time', async () => {
    await cluster.plane.apply(app('Deployment', 'thirty', { replicas: 30 }));
    const path = appPath('deployments', 'thirty');
    const available = ({ status }: DeploymentObject) => status?.availableReplicas ?? 0;
    const limitMs = 240_000;
    await cluster.objectIs<DeploymentObject>(
      path,
      'all available',
      (seen) => available(seen) === 30,
      limitMs,
    );
    const before = await podNames('app=thirty');
    await cluster.plane.kubectl('set', 'env', 'deployment/thirty', 'EDITION=second');
    let fewest = 30;
    let isOver = false;
    const rolled = rolledOut('deployment/thirty').then(() => {
      isOver = true;
    });
    const isRolled = (seen: DeploymentObject) => {
      fewest = Math.min(fewest, available(seen));
      return isOver;
    };
    const watched = cluster.objectIs(path, 'rolled over', isRolled, limitMs);
    await Promise.all([rolled, watched]);
    assert.ok(fewest >= 23, `at one time only ${fewest} were available`);
    for (const name of before) await podIsGone(cluster.plane, name);
    const now = await podNames('app=thirty');
    assert.equal(now.length, 30);
    await cluster.plane.kubectl('delete', 'deployment', 'thirty', '--cascade=foreground');
    for (const name of [...before, ...now]) await cluster.noContainersOf(name);
  });
});

function readySince(pod: Awaited<ReturnType<SmallCluster['ready']>>): string {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return condition?.lastTransitionTime ?? '';
}
