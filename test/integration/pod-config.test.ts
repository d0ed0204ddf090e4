import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { PodSpec } from '../../src/kinds/index.ts';
import { InProcessNode, type PodParts } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const execute = promisify(execFile);
const { signal } = new AbortController();
const hostPort = 20_000 + (process.pid % 10_000);
const longName = `n${'a'.repeat(70)}`;
const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';
const data = { volumes: [{ name: 'data', emptyDir: {} }] } satisfies Partial<PodSpec>;
const mounted = (fields: object = {}) => ({
  volumeMounts: [{ name: 'data', mountPath: '/data', ...fields }],
});
const writes = (script: string) => ({
  initContainers: [{ name: 'first', command: ['sh', '-c', script], ...mounted() }],
});
const one = (script: string, spec: Partial<PodSpec> = {}, container: object = {}): PodParts => ({
  spec,
  containers: { main: { script, ...container } },
});

/** Resolves with what the server on the pod's port sends; undefined when it sends nothing. */
async function said(host: string, port: number): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const socket = new Socket();
    let text = '';
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text === '' ? undefined : text));
    socket.connect(port, host);
  });
}

/**
 * Installs a second runtime handler, a wrapper of runc that records its calls and fails when the
 * test requests it.
 */
async function secondHandler(directory: string): Promise<void> {
  const script = [
    '#!/bin/sh',
    `echo "$@" >> ${directory}/called`,
    `[ -e ${directory}/refuse ] || exec runc "$@"`,
    'while [ "$1" != --log ]; do shift; done',
    `echo '{"level":"error","msg":"this machine cannot run it"}' > "$2"; exit 1`,
  ];
  await writeFile(join(directory, 'crun'), `${script.join('\n')}\n`);
  await chmod(join(directory, 'crun'), 0o755);
}

describe('sandboxes and containers of pod specs', { skip: skipReason() }, () => {
  let node: InProcessNode;
  let programs: string;

  before(async () => {
    programs = await mkdtemp(join(tmpdir(), 'klg-programs-'));
    await secondHandler(programs);
    await writeFile(
      join(programs, 'resolv.conf'),
      'nameserver 192.0.2.53\nsearch corp.example\noptions timeout:3\n',
    );
    node = await InProcessNode.open({
      env: { ...process.env, PATH: `${programs}:${process.env['PATH']}` },
      flags: ['--allowed-unsafe-sysctls=kernel.msg*'],
      settings: () => ({
        clusterDns: ['10.96.0.10'],
        clusterDomain: 'cluster.local',
        resolvConf: join(programs, 'resolv.conf'),
      }),
    });
    await mkdir(node.path('shared'));
    await execute('mount', ['--bind', node.path('shared'), node.path('shared')]);
    await execute('mount', ['--make-rshared', node.path('shared')]);
    await node.put(pods(node));
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
    await rm(programs, { recursive: true, force: true });
  });

  const pods = (own: InProcessNode): Record<string, PodParts> => ({
    names: one('hostname; hostname -f; cat /etc/hosts', {
      hostname: 'busy',
      subdomain: 'db',
      hostAliases: [{ ip: '192.0.2.7', hostnames: ['a.example', 'b.example'] }],
    }),
    fqdn: one('hostname', { hostname: 'busy', subdomain: 'db', setHostnameAsFQDN: true }),
    toolong: one('hostname', { hostname: 'h'.repeat(60), subdomain: 'db', setHostnameAsFQDN: true }),
    override: one('hostname; tail -1 /etc/hosts', { hostnameOverride: 'www.shop.example', subdomain: 'db' }),
    [longName]: one('hostname'),
    dns: one('cat /etc/resolv.conf', { dnsConfig: { options: [{ name: 'ndots', value: '2' }] } }),
    dnsdefault: one('cat /etc/resolv.conf', { dnsPolicy: 'Default' }),
    dnsnone: one('cat /etc/resolv.conf', {
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['192.0.2.99'], searches: ['only.example'] },
    }),
    dnsmany: one('grep search /etc/resolv.conf', {
      dnsConfig: { searches: Array.from({ length: 30 }, (_, index) => `s${index}.example`) },
    }),
    host: one(
      'for n in net pid ipc; do readlink /proc/self/ns/$n; done; cat /etc/resolv.conf; hostname; head -1 /etc/hosts',
      { hostNetwork: true, hostPID: true, hostIPC: true },
    ),
    hostdns: one('cat /etc/resolv.conf', { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }),
    shared: {
      spec: { shareProcessNamespace: true },
      containers: {
        other: `: the-other; ${stays}`,
        main: 'cat /proc/1/comm; grep -l "the-[o]ther" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | xargs kill -TERM && echo seen',
      },
    },
    apart: one('cat /proc/1/comm; readlink /proc/self/ns/ipc'),
    port: {
      spec: { restartPolicy: 'Always' },
      containers: {
        main: {
          script: 'while true; do echo "here I am" | nc -l -p 8080; done',
          ports: [{ containerPort: 8080, hostPort }],
        },
      },
    },
    sysctls: one(
      'cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced /proc/sys/kernel/msgmax',
      {
        securityContext: {
          sysctls: [
            { name: 'net.ipv4.ip_unprivileged_port_start', value: '80' },
            { name: 'kernel/shm_rmid_forced', value: '1' },
            { name: 'kernel.msgmax', value: '4096' },
          ],
        },
      },
    ),
    badsysctl: one('true', { securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '9' }] } }),
    plussysctl: one('true', {
      securityContext: { sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1+kernel.core_pattern=x' }] },
    }),
    env: {
      metadata: { labels: { app: 'web' }, annotations: { note: 'so "quoted"' } },
      containers: {
        main: {
          command: [
            'sh',
            '-c',
            'tr "\\0" "\\n" < /proc/1/environ | grep -E "^[A-Z]_"; echo "$0"',
            'one $(A_LITERAL) $$(A_LITERAL) $(NOBODY)',
          ],
          env: [
            { name: 'A_LITERAL', value: 'plain' },
            { name: 'B_EXPANDED', value: '<$(A_LITERAL)> $$(A_LITERAL) $(LATER) $(A_LITERAL' },
            { name: 'C_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'D_LABEL', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
            { name: 'E_NOTE', valueFrom: { fieldRef: { fieldPath: "metadata.annotations['note']" } } },
            { name: 'F_NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
            { name: 'G_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
            { name: 'H_HOST', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
            { name: 'I_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
            { name: 'J_CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
            {
              name: 'K_MI',
              valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } },
            },
            { name: 'L_NODE', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
            { name: 'A_LITERAL', value: 'again' },
          ],
          resources: { requests: { memory: '33Mi', cpu: '100m' }, limits: { cpu: '1500m' } },
        },
      },
    },
    fileenv: one(
      'echo "$COLOUR|$SHAPE|${NONE-unset}"',
      { ...data, ...writes(`printf "# colours\\nCOLOUR='deep blue'\\nSHAPE='a\\nb'\\n" > /data/vars`) },
      {
        env: ['COLOUR', 'SHAPE', 'NONE'].map((name) => ({
          name,
          valueFrom: {
            fileKeyRef: { volumeName: 'data', path: 'vars', key: name, optional: name === 'NONE' },
          },
        })),
      },
    ),
    filelink: one(
      'true',
      { ...data, ...writes('ln -s /etc/passwd /data/vars') },
      {
        env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'vars', key: 'root' } } }],
      },
    ),
    streams: {
      containers: {
        main: { script: 'pwd; test -t 1 || echo no terminal', workingDir: '/tmp' },
        terminal: { script: 'test -t 0 && test -t 1 && echo terminal', tty: true, stdin: true },
      },
    },
    subpath: {
      spec: { ...data, ...writes('mkdir -m 700 /data/made; echo inside > /data/made/file') },
      containers: {
        main: {
          script: 'ls -A /data; echo here > /data/from-main; stat -c %a /data',
          env: [
            { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
            { name: 'PART', value: 'part' },
          ],
          ...mounted({ subPathExpr: '$(POD)/$(PART)' }),
        },
        made: { script: 'cat /data', ...mounted({ subPath: 'made/file' }) },
      },
    },
    again: one(
      '[ -e /data/tried ] && exit 0; touch /data/tried; exit 1',
      { ...data, restartPolicy: 'OnFailure' },
      mounted({ subPath: 'part' }),
    ),
    unnamed: one('true', data, mounted({ subPathExpr: '$(NOBODY)' })),
    inlink: one(
      'touch /data/through && echo written',
      { ...data, ...writes('mkdir /data/in; ln -s in /data/link') },
      mounted({ subPath: 'link' }),
    ),
    escape: {
      spec: { ...data, ...writes('ln -s / /data/root; ln -s /data/nothing /data/gone') },
      containers: {
        main: { script: 'ls /data', ...mounted({ subPath: 'root' }) },
        gone: { script: 'ls /data', ...mounted({ subPath: 'gone' }) },
      },
    },
    readonly: {
      spec: data,
      containers: {
        main: { script: 'touch /data/x 2>&1; true', ...mounted({ readOnly: true }) },
        degraded: {
          script: 'touch /data/x 2>&1; true',
          ...mounted({ readOnly: true, recursiveReadOnly: 'IfPossible' }),
        },
      },
    },
    recursive: one('true', data, mounted({ readOnly: true, recursiveReadOnly: 'Enabled' })),
    resources: one(
      'cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes cpu/cpu.shares cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us /proc/self/oom_score_adj; for f in hugetlb/hugetlb.*.limit_in_bytes; do [ ! -e $f ] || cat $f; done',
      { overhead: { cpu: '100m', memory: '16Mi' } },
      { resources: { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } } },
    ),
    overhead: one(
      stays,
      { restartPolicy: 'Always', overhead: { cpu: '100m', memory: '16Mi' } },
      { resources: { limits: { cpu: '500m', memory: '64Mi' } } },
    ),
    class: one('echo ran', { runtimeClassName: 'crun' }),
    noclass: one('true', { runtimeClassName: 'gvisor' }),
    ownusers: one('cat /proc/self/uid_map', { hostUsers: false, ...data }, mounted()),
    propagation: {
      spec: {
        restartPolicy: 'Always',
        volumes: [{ name: 'data', hostPath: { path: own.path('shared') } }],
      },
      containers: {
        none: { script: stays, ...mounted() },
        follows: { script: stays, ...mounted({ mountPropagation: 'HostToContainer' }) },
        both: {
          script: `mkdir -p /data/own && mount -t tmpfs none /data/own && touch /data/own/here; ${stays}`,
          securityContext: { privileged: true },
          ...mounted({ mountPropagation: 'Bidirectional' }),
        },
      },
    },
  });

  it('a pod has the host name, domain and hosts file of its spec', async () => {
    const [host, full, ...hosts] = (await node.printed('names')).split('\n');
    const name = 'busy.db.default.svc.cluster.local';
    assert.deepEqual([host, full], ['busy', name]);
    const ip = node.pod('names')?.status.podIP;
    assert.deepEqual(hosts, [
      '# Kubernetes-managed hosts file.',
      '127.0.0.1\tlocalhost',
      '::1\tlocalhost ip6-localhost ip6-loopback',
      'fe00::0\tip6-localnet',
      'fe00::0\tip6-mcastprefix',
      'fe00::1\tip6-allnodes',
      'fe00::2\tip6-allrouters',
      `${ip}\t${name}\tbusy`,
      '',
      '# Entries added by HostAliases.',
      '192.0.2.7\ta.example\tb.example',
    ]);
    assert.equal(await node.printed('fqdn'), name);
    const [override, entry] = (await node.printed('override')).split('\n');
    assert.equal(override, 'www.shop.example');
    assert.match(entry ?? '', /\twww\.shop\.example$/);
    assert.equal(await node.printed(longName), longName.slice(0, 63));
  });

  it('a pod stays pending when its full host name is longer than the kernel allows', async () => {
    const full = `${'h'.repeat(60)}.db.default.svc.cluster.local`;
    assert.equal(
      await node.event('toolong', 'FailedCreatePodSandBox'),
      `Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (64 characters is the max, ${full.length} characters requested)`,
    );
    assert.equal(node.pod('toolong')?.status.phase, 'Pending');
  });

  it('a pod has the resolver configuration of its DNS policy', async () => {
    const lines = async (name: string) =>
      (await node.printed(name))
        .split('\n')
        .filter((line) => line !== '')
        .toSorted();
    const cluster = 'search default.svc.cluster.local svc.cluster.local cluster.local corp.example';
    assert.deepEqual(await lines('dns'), ['nameserver 10.96.0.10', 'options ndots:2', cluster]);
    assert.deepEqual(await lines('hostdns'), ['nameserver 10.96.0.10', 'options ndots:5', cluster]);
    const host = ['nameserver 192.0.2.53', 'options timeout:3', 'search corp.example'];
    assert.deepEqual(await lines('dnsdefault'), host);
    assert.deepEqual(await lines('dnsnone'), ['nameserver 192.0.2.99', 'search only.example']);
    const searches = (await node.printed('dnsmany')).split(' ').slice(1);
    assert.equal(searches.length, 32);
    assert.equal(
      await node.event('dnsmany', 'DNSConfigForming'),
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(' ')}`,
    );
  });

  it('containers use the host, pod and container namespaces of the pod spec', async () => {
    const host = (await node.printed('host')).split('\n');
    for (const name of ['net', 'pid', 'ipc'])
      assert.ok(host.includes(await readlink(`/proc/self/ns/${name}`)), `${name}: ${host.join(' ')}`);
    assert.ok(host.includes('nameserver 192.0.2.53'), 'ClusterFirst with hostNetwork is Default');
    assert.ok(host.includes('# Kubernetes-managed hosts file (host network).'));
    const [first, seen] = (await node.printed('shared')).split('\n');
    assert.notEqual(first, 'sh');
    assert.equal(seen, 'seen');
    const [own, ipc] = (await node.printed('apart')).split('\n');
    assert.match(own ?? '', /sh|cat/);
    assert.notEqual(ipc, await readlink('/proc/self/ns/ipc'));
  });

  it('a host port is forwarded to the container', async () => {
    await node.podIs('port', 'running', ({ phase }) => phase === 'Running');
    const hostIp = node.pod('port')?.status.hostIP ?? '';
    assert.equal(await eventually('an answer', () => said(hostIp, hostPort)), 'here I am\n');
  });

  it('safe and allowed sysctls are set, and others are rejected', async () => {
    assert.equal(await node.printed('sysctls'), '80\n1\n4096');
    for (const [name, message] of [
      ['badsysctl', 'forbidden sysctl: "net.core.somaxconn" not allowlisted'],
      ['plussysctl', 'forbidden sysctl: "kernel.shm_rmid_forced" must not have a + in its value'],
    ] as const) {
      const { status } = await node.podIs(name, 'refused', ({ phase }) => phase === 'Failed');
      assert.deepEqual([status.reason, status.message], ['SysctlForbidden', `Pod was rejected: ${message}`]);
      assert.equal(await node.event(name, 'SysctlForbidden'), message);
    }
  });

  it('containers have environment variables of every source in a stable order, and commands expand them', async () => {
    const lines = (await node.printed('env')).split('\n');
    const { metadata, status, spec } = await node.succeeded('env');
    assert.deepEqual(lines.slice(0, -2), [
      'A_LITERAL=again',
      'B_EXPANDED=<plain> $(A_LITERAL) $(LATER) $(A_LITERAL',
      `C_NAME=${metadata.name}`,
      'D_LABEL=web',
      'E_NOTE=so "quoted"',
      `F_NODE=${spec.nodeName}`,
      `G_IP=${status.podIP}`,
      `H_HOST=${status.hostIP}`,
      `I_UID=${metadata.uid}`,
      'J_CPU=2',
      'K_MI=33',
    ]);
    assert.match(lines.at(-2) ?? '', /^L_NODE=\d{9,}$/);
    assert.equal(lines.at(-1), 'one again $(A_LITERAL) $(NOBODY)');
  });

  it('environment variables are read from a file of a volume, but not through a link that leads out of it', async () => {
    assert.equal(await node.printed('fileenv'), 'deep blue|a\nb|unset');
    const message = await node.waits('filelink', 'CreateContainerConfigError');
    assert.equal(message, "couldn't parse env file: a symlink leads out of the volume");
    assert.equal(await node.event('filelink', 'Failed'), `Error: ${message}`);
  });

  it('a container has the working directory and the terminal of its spec', async () => {
    assert.equal(await node.printed('streams'), '/tmp\nno terminal');
    assert.match(await node.printed('streams', 'terminal'), /^terminal\r?$/);
  });

  it('subPaths are mounted and created when missing, and never leave the volume', async () => {
    assert.equal(await node.printed('subpath'), '777');
    assert.equal(await node.printed('subpath', 'made'), 'inside');
    assert.equal(await node.printed('inlink'), 'written');
    const { status } = await node.succeeded('again');
    assert.equal(status.containerStatuses?.[0]?.restartCount, 1, 'a restarted container finds its subPath');
    assert.equal(await node.waits('unnamed', 'CreateContainerConfigError'), 'missing value for NOBODY');
    const says = (container: string) =>
      `failed to prepare subPath for volumeMount "data" of container "${container}": a symlink leads out of the volume`;
    assert.equal(await node.waits('escape', 'CreateContainerConfigError'), says('main'));
    assert.equal(await node.waits('escape', 'CreateContainerConfigError', 'gone'), says('gone'));
    for (const name of ['subpath', 'inlink', 'again']) {
      const uid = node.pod(name)?.metadata.uid ?? '';
      await eventually('the mounts of a terminated pod to be removed', async () =>
        (await readFile('/proc/self/mounts', 'utf8')).includes(uid) ? undefined : true,
      );
    }
  });

  it('read-only mounts are read-only, recursively where the runtime supports it', async () => {
    for (const name of ['main', 'degraded'])
      assert.match(await node.printed('readonly', name), /Read-only file system/);
    if (!node.runtime.version.startsWith('1.')) return;
    assert.equal(
      await node.waits('recursive', 'CreateContainerConfigError'),
      'failed to resolve recursive read-only mode: volume "data" requested recursive read-only mode, but it is not supported by the runtime',
    );
  });

  it('cgroups have the resources of the containers and the overhead of the runtime class', async () => {
    const [memory, shares, quota, period, score = '', ...huge] = (await node.printed('resources')).split(
      '\n',
    );
    assert.deepEqual([memory, shares, quota, period], [`${64 << 20}`, '256', '50000', '100000']);
    assert.ok(Number(score) > 900 && Number(score) < 1000, score);
    assert.deepEqual([...new Set(huge)].join(), huge.length === 0 ? '' : '0');
    const { metadata } = await node.podIs('overhead', 'running', ({ phase }) => phase === 'Running');
    const cgroup = `${node.runtime.containerd.layout.cgroup}/kubepods/pod${metadata.uid}`;
    const read = async (file: string) =>
      (await readFile(`/sys/fs/cgroup/${file.replace(/^(\w+)/, `$1${cgroup}/$1`)}`, 'utf8')).trim();
    assert.equal(await read('memory.limit_in_bytes'), `${80 << 20}`);
    assert.equal(await read('cpu.cfs_quota_us'), '60000');
  });

  it('a pod uses the runtime handler of its runtime class', async () => {
    assert.equal(await node.printed('class'), 'ran');
    assert.match(await readFile(join(programs, 'called'), 'utf8'), / create /);
    const message = await node.event('noclass', 'FailedCreatePodSandBox');
    assert.match(
      message,
      /^Failed to create pod sandbox: failed to lookup RuntimeClass gvisor: runtimeclass.node.k8s.io "gvisor" not found: .* the runtime has crun, runc$/,
    );
    assert.equal(node.pod('noclass')?.status.phase, 'Pending');
    await writeFile(join(programs, 'refuse'), '');
    await node.put({ refused: one('true', { runtimeClassName: 'crun' }) });
    assert.match(await node.event('refused', 'FailedCreatePodSandBox'), /this machine cannot run it/);
    assert.equal(node.pod('refused')?.status.phase, 'Pending');
  });

  it('a pod uses a user namespace or is rejected with the reason', async () => {
    if (!node.runtime.version.startsWith('1.')) return;
    assert.equal(
      await node.event('ownusers', 'FailedCreatePodSandBox'),
      "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces",
    );
    assert.equal(node.pod('ownusers')?.status.phase, 'Pending');
  });

  it('volume mounts have the requested mount propagation', async () => {
    const { status } = await node.podIs(
      'propagation',
      'running',
      ({ containerStatuses = [] }) =>
        containerStatuses.length === 3 &&
        containerStatuses.every(({ state }) => state?.running !== undefined),
    );
    await mkdir(node.path('shared', 'late'));
    await execute('mount', ['-t', 'tmpfs', 'none', node.path('shared', 'late')]);
    await writeFile(node.path('shared', 'late', 'file'), '');
    await eventually('the mount of the container to be on the host', async () =>
      (await readFile('/proc/self/mounts', 'utf8')).includes(` ${node.path('shared', 'own')} `)
        ? true
        : undefined,
    );
    const observed = await Promise.all(
      (status.containerStatuses ?? []).map(async ({ name, containerID = '' }) => {
        const containerId = containerID.replace(/^.*:\/\//, '');
        const cmd = ['sh', '-c', 'ls /data/late /data/own'];
        const { stdout } = await node.runtime.cri.execSync({ containerId, cmd, timeout: 10n }, signal);
        return [name, `${Buffer.from(stdout)}`.match(/^(file|here)$/gm) ?? []];
      }),
    );
    assert.deepEqual(Object.fromEntries(observed), {
      none: [],
      follows: ['file', 'here'],
      both: ['file', 'here'],
    });
  });
});
