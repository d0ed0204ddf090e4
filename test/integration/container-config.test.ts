import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { PodSandboxConfig } from '../../src/cri/index.ts';
import type { Container, PodSpec } from '../../src/kinds/index.ts';
import { isKind, seededRandom } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import { NodePlanner, type NodePlannerDeps, realRuntimeFiles } from '../../src/runtime/index.ts';
import { aPod } from '../fakes/pods.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../private-runtime.ts';
import { skipReason } from './containerd-fixture.ts';

const { signal } = new AbortController();
const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
const files = realRuntimeFiles();
const random = seededRandom(1);

/**
 * Creates a planner of container configs like the kubelet's, which uses the files of this machine
 * and the volumes and objects of the test.
 */
function planner(runtime: PrivateRuntime, other: Partial<NodePlannerDeps> = {}): NodePlanner {
  return new NodePlanner(
    {
      node: {
        cgroups: isV2 ? 'v2' : 'v1',
        memoryCapacity: 8n << 30n,
        swapCapacity: 0n,
        swapController: 'absent',
        swapBehavior: 'NoSwap',
        hugePageSizes: [],
        cpuQuota: 'enforced',
        cpuPeriodUs: 100_000n,
        oomKills: 'container',
      },
      podLogsDir: join(runtime.dataDir, 'logs'),
      podsDir: join(runtime.dataDir, 'pods'),
      seccomp: { profileRoot: join(runtime.dataDir, 'seccomp'), fallback: 'Unconfined' },
      selinux: 'disabled',
      thermalThrottlePaths: [],
      clusterDns: ['10.96.0.10'],
      clusterDomain: 'cluster.local',
      resolvConf: '/etc/resolv.conf',
      stopSignals: 'ignored',
    },
    {
      random,
      journal: { event: () => {}, step: () => {} },
      nodeEvent: () => {},
      readNodeFile: async (path) =>
        path === '/etc/resolv.conf' ? 'search corp.example\n' : await readFile(path, 'utf8'),
      nodeIps: () => ['192.0.2.1'],
      allocatable: () => new Map(),
      cgroupParent: () => runtime.containerd.layout.cgroup,
      runtimeHandler: async () => '',
      supportsRecursiveReadOnly: () => false,
      users: async () => ({ mode: 'NODE' }),
      objects: {
        configMap: async () => ({ data: { COLOUR: 'blue', SHAPE: 'round' } }),
        secret: async () => ({ data: { RAW: Buffer.from('gärtner\n').toString('base64') } }),
      },
      services: () => ({
        state: 'read',
        services: [
          {
            metadata: { name: 'kubernetes', namespace: 'default' },
            spec: { clusterIP: '10.96.0.1', ports: [{ port: 443 }] },
          },
        ],
      }),
      volumes: () => new Map(),
      volumeGroups: () => [],
      ...other,
    },
  );
}

/** Runs one pod from its manifest to a running container, in which the test runs commands. */
class RunningPod implements AsyncDisposable {
  readonly #runtime: PrivateRuntime;
  readonly sandboxId: string;
  readonly containerId: string;
  readonly config: MessageInit<PodSandboxConfig>;
  readonly ip: string;

  private constructor(
    runtime: PrivateRuntime,
    facts: { sandboxId: string; containerId: string; config: MessageInit<PodSandboxConfig>; ip: string },
  ) {
    this.#runtime = runtime;
    this.sandboxId = facts.sandboxId;
    this.containerId = facts.containerId;
    this.config = facts.config;
    this.ip = facts.ip;
  }

  static async start(runtime: PrivateRuntime, name: string, parts: RunOptions): Promise<RunningPod> {
    const { cri } = runtime;
    const plans = planner(runtime, parts.deps);
    const container = { image: runtime.image, command: ['sleep', '1000'], ...parts.container, name: 'main' };
    const pod: Pod = aPod({
      metadata: { name, uid: podUid(`uid-${name}`), labels: { app: 'test' } },
      spec: { enableServiceLinks: true, dnsPolicy: 'ClusterFirst', ...parts.spec, containers: [container] },
    });
    const { config, runtimeHandler } = await plans.sandboxPlan(pod, 0, signal);
    await mkdir(config.logDirectory ?? '', { recursive: true });
    const { podSandboxId: sandboxId } = await cri.runPodSandbox({ config, runtimeHandler }, signal);
    try {
      const { status } = await cri.podSandboxStatus({ podSandboxId: sandboxId }, signal);
      const ip = status?.network?.ip ?? '';
      const image = { ref: runtime.image, uid: undefined, username: '' };
      const podIps = ip === '' ? [] : [ip];
      const plan = await plans.containerPlan(
        { pod, container, restartCount: 0, image, podIps, targetId: undefined },
        signal,
      );
      await mkdir(join(config.logDirectory ?? '', dirname(plan.config.logPath ?? '')), { recursive: true });
      for (const { path, text, mode } of plan.files) await files.write(path, text, mode);
      const created = await cri.createContainer(
        { podSandboxId: sandboxId, config: plan.config, sandboxConfig: config },
        signal,
      );
      await cri.startContainer({ containerId: created.containerId }, signal);
      return new RunningPod(runtime, { sandboxId, containerId: created.containerId, config, ip });
    } catch (error) {
      await remove(runtime, sandboxId);
      throw error;
    }
  }

  /** Returns the output of a shell command in the container, without the last newline. */
  async sh(script: string): Promise<string> {
    const cmd = ['sh', '-c', script];
    const { stdout, stderr } = await this.#runtime.cri.execSync(
      { containerId: this.containerId, cmd, timeout: 30n },
      signal,
    );
    return `${Buffer.from(stdout)}${Buffer.from(stderr)}`.replace(/\n$/, '');
  }

  async status(field: string): Promise<string> {
    return await this.sh(`sed -n 's/^${field}:[[:space:]]*//p' /proc/1/status`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await remove(this.#runtime, this.sandboxId);
  }
}

interface RunOptions {
  readonly container?: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly deps?: Partial<NodePlannerDeps>;
}

async function remove({ cri }: PrivateRuntime, podSandboxId: string): Promise<void> {
  await cri.stopPodSandbox({ podSandboxId }, signal).catch((error: unknown) => {
    if (!isKind(error, 'NotFound')) throw error;
  });
  await cri.removePodSandbox({ podSandboxId }, signal);
}

describe('containers on containerd match their pod spec', { skip: skipReason() }, () => {
  let runtime: PrivateRuntime;
  before(async () => {
    runtime = await openPrivateRuntime();
  });
  after(async () => {
    await runtime?.[Symbol.asyncDispose]();
  });

  test('expands variables, commands and arguments', async () => {
    await using pod = await RunningPod.start(runtime, 'env', {
      container: {
        command: ['sh', '-c', 'echo "$0" > /tmp/said; exec sleep 1000', '$(COLOUR) $$(COLOUR) $(NOBODY)'],
        envFrom: [{ configMapRef: { name: 'settings' } }, { prefix: 'S_', secretRef: { name: 'keys' } }],
        env: [
          { name: 'SHAPE', value: 'not $(COLOUR)' },
          { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
          { name: 'API', value: '$(KUBERNETES_PORT)' },
        ],
        resources: { limits: { memory: '64Mi' } },
      },
    });
    assert.equal(await pod.sh('cat /tmp/said'), 'blue $(COLOUR) $(NOBODY)');
    assert.equal(
      await pod.sh('echo "$COLOUR|$SHAPE|$POD_IP|$LIMIT|$API"; echo -n "$S_RAW"'),
      `blue|not blue|${pod.ip}|64|tcp://10.96.0.1:443\ngärtner`,
    );
  });

  test('sets host name, hosts file and resolver', async () => {
    await using pod = await RunningPod.start(runtime, 'names', {
      spec: {
        hostname: 'busy',
        subdomain: 'db',
        setHostnameAsFQDN: true,
        hostAliases: [{ ip: '1.2.3.4', hostnames: ['a.example', 'b.example'] }],
        dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
      },
    });
    const fqdn = 'busy.db.default.svc.cluster.local';
    assert.equal(await pod.sh('hostname'), fqdn);
    const hosts = await pod.sh('cat /etc/hosts');
    assert.match(hosts, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/);
    assert.ok(hosts.includes(`\n${pod.ip}\t${fqdn}\tbusy\n`), hosts);
    assert.ok(hosts.endsWith('\n\n# Entries added by HostAliases.\n1.2.3.4\ta.example\tb.example'), hosts);
    const lines = (await pod.sh('cat /etc/resolv.conf')).split('\n').filter((line) => line !== '');
    assert.deepEqual(lines.sort(), [
      'nameserver 10.96.0.10',
      'options ndots:2',
      'search default.svc.cluster.local svc.cluster.local cluster.local corp.example',
    ]);
  });

  test('sets users, groups, capabilities and no_new_privs', async () => {
    await using pod = await RunningPod.start(runtime, 'users', {
      spec: {
        securityContext: { runAsUser: 1000, runAsGroup: 2000, fsGroup: 3000, supplementalGroups: [4000] },
      },
      container: {
        securityContext: {
          runAsNonRoot: true,
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
          seccompProfile: { type: 'RuntimeDefault' },
        },
      },
    });
    assert.equal(await pod.sh('id -u; id -g'), '1000\n2000');
    const groups = new Set((await pod.status('Groups')).trim().split(/\s+/));
    assert.ok(groups.has('3000') && groups.has('4000') && !groups.has('0'), [...groups].join());
    assert.equal(await pod.status('CapBnd'), '0000000000000400');
    assert.equal(await pod.status('NoNewPrivs'), '1');
    assert.equal(await pod.status('Seccomp'), '2');
    assert.match(await pod.sh('touch /x 2>&1; true'), /[Rr]ead-only file system/);
  });

  test('rejects a container with runAsNonRoot and a root user before it is created', async () => {
    await assert.rejects(
      RunningPod.start(runtime, 'root', { container: { securityContext: { runAsNonRoot: true } } }),
      {
        code: 'CONTAINER_CONFIG',
        message:
          'container has runAsNonRoot and image will run as root (pod: "root_default(uid-root)", container: main)',
      },
    );
  });

  test('masks paths and makes paths read-only, and does neither with procMount Unmasked', async () => {
    await using pod = await RunningPod.start(runtime, 'masks', {});
    assert.equal(
      await pod.sh('wc -c < /proc/timer_list; wc -c < /proc/keys; ls -A /sys/firmware | wc -l'),
      '0\n0\n0',
    );
    assert.match(await pod.sh('awk \'$2 == "/proc/sys" { print $4 }\' /proc/mounts'), /^ro,/);
    assert.equal(await pod.status('Seccomp'), '0');
    await using open = await RunningPod.start(runtime, 'open', {
      container: { securityContext: { procMount: 'Unmasked' } },
    });
    assert.equal(await open.sh('grep -cE " /proc/(timer_list|sys|kcore) " /proc/mounts; true'), '0');
  });

  test('sets CPU, memory and OOM score', async () => {
    await using pod = await RunningPod.start(runtime, 'cgroup', {
      container: {
        resources: { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
      },
    });
    const read = async (v1: string, v2: string) => await pod.sh(`cat /sys/fs/cgroup/${isV2 ? v2 : v1}`);
    assert.equal(await read('memory/memory.limit_in_bytes', 'memory.max'), `${64 * 1024 * 1024}`);
    if (isV2) {
      assert.equal(await read('', 'cpu.max'), '50000 100000');
    } else {
      assert.equal(await read('cpu/cpu.shares', ''), '256');
      assert.equal(await read('cpu/cpu.cfs_quota_us', ''), '50000');
      assert.equal(await read('cpu/cpu.cfs_period_us', ''), '100000');
    }
    // The expected OOM score adjustment: the request of 32 MiB is 1/256 of the node's 8 GiB, so the
    // value is 1000 - floor(1000 / 256).
    assert.equal(await pod.sh('cat /proc/1/oom_score_adj'), '997');
  });

  test('sets volumes, termination log and labels', async () => {
    const data = join(runtime.dataDir, 'volume');
    await mkdir(data, { recursive: true });
    await writeFile(join(data, 'file'), 'from the host');
    const volumes = () => new Map([['data', { kind: 'path', hostPath: data } as const]]);
    await using pod = await RunningPod.start(runtime, 'volumes', {
      deps: { volumes },
      container: {
        terminationMessagePath: '/dev/termination-log',
        volumeMounts: [
          { name: 'data', mountPath: '/data', readOnly: true },
          { name: 'data', mountPath: '/same' },
        ],
      },
    });
    assert.equal(
      await pod.sh('cat /data/file; echo; touch /data/x 2>&1; touch /same/y'),
      'from the host\ntouch: /data/x: Read-only file system',
    );
    assert.ok(existsSync(join(data, 'y')));
    await pod.sh('echo goodbye > /dev/termination-log');
    const { status } = await runtime.cri.containerStatus({ containerId: pod.containerId }, signal);
    const file =
      status?.mounts.find(({ containerPath }) => containerPath === '/dev/termination-log')?.hostPath ?? '';
    assert.equal(await readFile(file, 'utf8'), 'goodbye\n');
    assert.equal((await stat(file)).mode & 0o777, 0o666);
    assert.equal(status?.labels['io.kubernetes.pod.uid'], 'uid-volumes');
    assert.equal(status?.annotations['io.kubernetes.container.restartCount'], '0');
    assert.ok(status?.logPath.endsWith('/logs/default_volumes_uid-volumes/main/0.log'), status?.logPath);
  });

  test('shares host namespaces and the process namespace of the pod', async () => {
    await using host = await RunningPod.start(runtime, 'host', {
      spec: { hostNetwork: true, hostPID: true, hostIPC: true },
      container: { env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] },
    });
    assert.equal(await host.sh('echo $POD_IP'), '192.0.2.1');
    for (const name of ['net', 'pid', 'ipc']) {
      const inside = await host.sh(`readlink /proc/self/ns/${name}`);
      assert.equal(inside, await readlink(`/proc/self/ns/${name}`), name);
    }
    assert.match(await host.sh('cat /etc/hosts'), /^# Kubernetes-managed hosts file \(host network\)\.\n/);
    await using shared = await RunningPod.start(runtime, 'shared', { spec: { shareProcessNamespace: true } });
    assert.notEqual(await shared.sh('cat /proc/1/comm'), 'sleep');
  });
});
