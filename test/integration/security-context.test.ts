import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { buildImage, imageArchitecture } from '../../src/containerd/index.ts';
import type { Container } from '../../src/kinds/index.ts';
import { InProcessNode } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

/** Fields of /proc/self/status of a process in the container. */
const facts =
  'id -u; id -g; id -G; sed -nE "s/^(CapInh|CapPrm|CapEff|CapBnd|Seccomp|NoNewPrivs):[[:space:]]*/\\1 /p" /proc/self/status';

interface Facts {
  readonly uid: string;
  readonly gid: string;
  readonly groups: readonly string[];
  readonly status: ReadonlyMap<string, string>;
}

function readFacts(printed: string): Facts {
  const [uid = '', gid = '', groups = '', ...rest] = printed.split('\n');
  const status = new Map(rest.map((line) => line.split(' ') as [string, string]));
  return { uid, gid, groups: groups.split(' '), status };
}

type Fields = NonNullable<Container['securityContext']>;
const secured = (securityContext: Fields, script = facts) => ({ script, securityContext });

const defaultCapabilities = '00000000a80425fb';
const allowChmod = {
  defaultAction: 'SCMP_ACT_ALLOW',
  syscalls: [{ names: ['chmod', 'fchmod', 'fchmodat'], action: 'SCMP_ACT_ERRNO' }],
};

const images = { named: 'localhost/test/named:1', numbered: 'localhost/test/numbered:1' };

/** Images with a shell whose user is given by name or by number. */
async function importImages({ runtime }: InProcessNode): Promise<void> {
  const store = await runtime.containerd.images();
  const links = ['sh', 'id', 'sed'].map(
    (name) => ({ path: `bin/${name}`, kind: 'link', target: 'busybox' }) as const,
  );
  const files = [
    { path: 'bin/busybox', kind: 'file', mode: 0o755, data: await readFile('/bin/busybox') } as const,
    ...links,
    {
      path: 'etc/passwd',
      kind: 'file',
      mode: 0o644,
      data: Buffer.from('web:x:1234:1235::/:/bin/sh\n'),
    } as const,
    {
      path: 'etc/group',
      kind: 'file',
      mode: 0o644,
      data: Buffer.from('web:x:1235:\nextra:x:5555:web\n'),
    } as const,
  ];
  const base = { architecture: imageArchitecture(process.arch), files, env: { PATH: '/bin' } };
  const signal = AbortSignal.timeout(120_000);
  await store.importArchive(buildImage({ ...base, name: images.named, user: 'web' }), signal);
  await store.importArchive(buildImage({ ...base, name: images.numbered, user: '4321' }), signal);
}

describe('security contexts observed inside containers', { skip: skipReason() }, () => {
  let node: InProcessNode;

  before(async () => {
    node = await InProcessNode.open();
    await importImages(node);
    await mkdir(node.path('kubelet', 'seccomp', 'profiles'), { recursive: true });
    await writeFile(node.path('kubelet', 'seccomp', 'profiles', 'no-chmod.json'), JSON.stringify(allowChmod));
    await writeFile(node.path('kubelet', 'seccomp', 'empty.json'), '');
    await node.put({
      plain: { containers: { main: facts } },
      users: {
        spec: {
          securityContext: {
            runAsUser: 1000,
            runAsGroup: 2000,
            fsGroup: 3000,
            supplementalGroups: [4000, 4001],
          },
          volumes: [{ name: 'data', emptyDir: {} }],
        },
        containers: {
          main: facts,
          other: secured({ runAsUser: 1001, runAsGroup: 2001 }),
          volume: {
            script: 'stat -c "%a %g" /data; touch /data/file && stat -c "%u %g" /data/file',
            volumeMounts: [{ name: 'data', mountPath: '/data' }],
          },
        },
      },
      rights: {
        containers: {
          none: secured({ capabilities: { drop: ['ALL'] } }),
          some: secured({ capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_BIND_SERVICE'] } }),
          more: secured({ capabilities: { add: ['SYS_TIME'] } }),
          fewer: secured({ capabilities: { drop: ['CHOWN'] } }),
          all: secured({ privileged: true }, `${facts}; ls /dev | wc -l`),
          held: secured({ allowPrivilegeEscalation: false }),
          still: secured({ readOnlyRootFilesystem: true }, 'touch /x; touch /dev/shm/x && echo written'),
        },
      },
      calls: {
        spec: { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
        containers: {
          pods: facts,
          open: secured({ seccompProfile: { type: 'Unconfined' } }),
          local: secured(
            { seccompProfile: { type: 'Localhost', localhostProfile: 'profiles/no-chmod.json' } },
            'grep ^Seccomp: /proc/self/status; touch /tmp-file; chmod 600 /tmp-file 2>&1; echo ended',
          ),
        },
      },
      masks: {
        containers: {
          main:
            'wc -c < /proc/timer_list; wc -c < /proc/keys; wc -c < /proc/interrupts; ls -A /sys/firmware | wc -l; ' +
            'for p in bus fs irq sys sysrq-trigger; do [ -e /proc/$p ] || continue; grep " /proc/$p " /proc/mounts | cut -d" " -f4 | cut -d, -f1; done | sort -u',
        },
      },
      emptyprofile: {
        containers: {
          main: secured({ seccompProfile: { type: 'Localhost', localhostProfile: 'empty.json' } }),
        },
      },
      missingprofile: {
        containers: { main: secured({ seccompProfile: { type: 'Localhost', localhostProfile: 'no.json' } }) },
      },
      rootuser: { containers: { main: secured({ runAsNonRoot: true, runAsUser: 0 }) } },
      named: { containers: { main: { ...secured({ runAsNonRoot: true }), image: images.named } } },
      numbered: {
        containers: {
          main: { ...secured({ runAsNonRoot: true }), image: images.numbered },
          name: { script: facts, image: images.named },
        },
      },
      rootimage: { containers: { main: secured({ runAsNonRoot: true }) } },
      rootpod: { spec: { securityContext: { runAsNonRoot: true } }, containers: { main: secured({}) } },
      nonroot: {
        spec: { securityContext: { runAsNonRoot: true } },
        containers: { main: secured({ runAsUser: 1234 }), root: secured({ runAsNonRoot: false }) },
      },
      armored: { containers: { main: secured({ appArmorProfile: { type: 'RuntimeDefault' } }) } },
      unarmored: { containers: { main: secured({ appArmorProfile: { type: 'Unconfined' } }) } },
      strict: {
        spec: { securityContext: { runAsUser: 1234, supplementalGroupsPolicy: 'Strict' } },
        containers: { main: { script: facts, image: images.named } },
      },
      merged: {
        spec: { securityContext: { runAsUser: 1234, supplementalGroupsPolicy: 'Merge' } },
        containers: { main: { script: facts, image: images.named } },
      },
      labelled: {
        spec: {
          restartPolicy: 'Always',
          securityContext: { seLinuxOptions: { user: 'u', role: 'r', type: 't', level: 's0:c1' } },
        },
        containers: {
          main: { script: 'sleep 1000', securityContext: { seLinuxOptions: { level: 's0:c2' } } },
          other: 'sleep 1000',
        },
      },
    });
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  it("a container without a security context runs as root with the runtime's default capabilities and no restrictions", async () => {
    const { uid, gid, status } = readFacts(await node.printed('plain'));
    assert.deepEqual([uid, gid], ['0', '0']);
    assert.equal(status.get('CapBnd'), defaultCapabilities);
    assert.deepEqual([status.get('Seccomp'), status.get('NoNewPrivs')], ['0', '0']);
  });

  it('users and groups of the pod are applied, and overridden by those of the container', async () => {
    const own = readFacts(await node.printed('users'));
    assert.deepEqual([own.uid, own.gid], ['1000', '2000']);
    assert.deepEqual(own.groups.toSorted(), ['2000', '3000', '4000', '4001']);
    const other = readFacts(await node.printed('users', 'other'));
    assert.deepEqual([other.uid, other.gid], ['1001', '2001']);
    assert.ok(other.groups.includes('3000') && other.groups.includes('4000'));
    const [volume, file] = (await node.printed('users', 'volume')).split('\n');
    assert.equal(volume, '2777 3000');
    assert.equal(file, '1000 3000');
  });

  it('capabilities, privileged, allowPrivilegeEscalation and readOnlyRootFilesystem are applied', async () => {
    const of = async (name: string) => readFacts(await node.printed('rights', name)).status;
    assert.equal((await of('none')).get('CapBnd'), '0000000000000000');
    assert.equal((await of('some')).get('CapEff'), '0000000000001400');
    assert.equal((await of('more')).get('CapEff'), '00000000aa0425fb');
    assert.equal((await of('fewer')).get('CapEff'), '00000000a80425fa');
    assert.equal((await of('held')).get('NoNewPrivs'), '1');
    const all = await node.printed('rights', 'all');
    const bound = BigInt(`0x${readFacts(all).status.get('CapEff')}`);
    assert.equal(bound & (1n << 21n), 1n << 21n, 'CAP_SYS_ADMIN');
    assert.ok(Number(all.split('\n').at(-1)) > 20, 'the devices of the machine');
    // Lines from stdout and stderr arrive in an undefined order.
    const lines = (await node.printed('rights', 'still')).split('\n').slice(-2).sort();
    assert.deepEqual(lines, ['touch: /x: Read-only file system', 'written']);
  });

  it('seccomp profiles of the pod, of the container and of a file are applied', async () => {
    assert.equal(readFacts(await node.printed('calls', 'pods')).status.get('Seccomp'), '2');
    assert.equal(readFacts(await node.printed('calls', 'open')).status.get('Seccomp'), '0');
    assert.match(await node.printed('calls', 'local'), /^Seccomp:\s2\n.*Operation not permitted\nended$/);
  });

  it('masked and read-only paths are applied', async () => {
    assert.equal(await node.printed('masks'), '0\n0\n0\n0\nro');
  });

  for (const [name, what] of [
    ['emptyprofile', 'empty'],
    ['missingprofile', 'missing'],
  ] as const)
    it(`a seccomp profile that is ${what} is rejected`, async () => {
      const message = await node.waits(name, 'CreateContainerError');
      assert.match(message, /seccomp/);
      assert.equal(await node.event(name, 'Failed'), `Error: ${message}`);
    });

  for (const [name, says] of [
    ['rootuser', "container's runAsUser breaks non-root policy"],
    ['rootimage', 'container has runAsNonRoot and image will run as root'],
    ['rootpod', 'container has runAsNonRoot and image will run as root'],
  ] as const)
    it(`pod ${name} fails with: ${says}`, async () => {
      const message = await node.waits(name, 'CreateContainerConfigError');
      const { name: podName, namespace, uid } = node.pod(name)?.metadata ?? {};
      assert.equal(message, `${says} (pod: "${podName}_${namespace}(${uid})", container: main)`);
      assert.equal(await node.event(name, 'Failed'), `Error: ${message}`);
      assert.equal(node.pod(name)?.status.phase, 'Pending');
    });

  it('an image whose user is only a name is rejected with an explanation of what to configure', async () => {
    const message = await node.waits('named', 'CreateContainerConfigError');
    const { name, namespace, uid } = node.pod('named')?.metadata ?? {};
    assert.equal(
      message,
      `container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root (pod: "${name}_${namespace}(${uid})", container: main): set securityContext.runAsUser to the number of user web`,
    );
    assert.equal(readFacts(await node.printed('numbered')).uid, '4321');
    assert.equal(readFacts(await node.printed('numbered', 'name')).uid, '1234');
  });

  it("non-root containers run, also when a container overrides the pod's security context", async () => {
    assert.equal(readFacts(await node.printed('nonroot')).uid, '1234');
    assert.equal(readFacts(await node.printed('nonroot', 'root')).uid, '0');
  });

  it('AppArmor profiles are rejected where the kernel does not support AppArmor', {
    skip: existsSync('/sys/module/apparmor'),
  }, async () => {
    const { status } = await node.podIs('armored', 'refused', ({ phase }) => phase === 'Failed');
    assert.equal(status.reason, 'AppArmor');
    const message = 'Cannot enforce AppArmor: AppArmor is not enabled on the host';
    assert.equal(status.message, `Pod was rejected: ${message}`);
    assert.equal(await node.event('armored', 'AppArmor'), message);
    await node.succeeded('unarmored');
  });

  it("groups of the image are applied unless the pod's supplementalGroupsPolicy excludes them", async () => {
    assert.ok(readFacts(await node.printed('merged')).groups.includes('5555'));
    const { status } = await node.podIs('strict', 'decided', ({ phase = 'Pending' }) => phase !== 'Pending');
    if (node.kubelet.state.runtimeState.abilities.strictGroups) {
      assert.deepEqual(readFacts(await node.printed('strict')).groups, ['1235']);
      return;
    }
    assert.equal(status.reason, 'SupplementalGroupsPolicyNotSupported', node.told('strict'));
    const message = 'SupplementalGroupsPolicy=Strict is not supported in this node';
    assert.equal(await node.event('strict', 'SupplementalGroupsPolicyNotSupported'), message);
  });

  it('SELinux options are passed to the runtime, and those of the container override those of the pod', async () => {
    const { status } = await node.podIs('labelled', 'running', ({ phase }) => phase === 'Running');
    const levels = await Promise.all(
      (status.containerStatuses ?? []).map(async ({ containerID = '' }) => {
        const containerId = containerID.replace(/^.*:\/\//, '');
        const { info } = await node.runtime.cri.containerStatus(
          { containerId, verbose: true },
          new AbortController().signal,
        );
        return JSON.parse(info['info'] ?? '{}').config.linux.security_context.selinux_options.level;
      }),
    );
    assert.deepEqual(levels, ['s0:c2', 's0:c1']);
  });

  it('a Localhost profile without a name is rejected', async () => {
    await node.put({
      nameless: {
        containers: { main: secured({ seccompProfile: { type: 'Localhost', localhostProfile: '' } }) },
      },
      outside: {
        containers: {
          main: secured({ seccompProfile: { type: 'Localhost', localhostProfile: '../up.json' } }),
        },
      },
    });
    await eventually('both manifests to be rejected', async () => {
      const fields = node.kubelet.endpoints.sourceProblems().map(({ field }) => field);
      const refused = fields.filter((field) => field.endsWith('seccompProfile.localhostProfile'));
      return refused.length === 2 ? true : undefined;
    });
    await node.take('nameless', 'outside');
  });

  it("the runtime's default seccomp profile is applied where the node is configured to do so", async () => {
    await node.stop();
    await node.start({ seccompFallback: 'RuntimeDefault' });
    await node.put({
      fallback: { containers: { main: facts, open: secured({ seccompProfile: { type: 'Unconfined' } }) } },
    });
    assert.equal(readFacts(await node.printed('fallback')).status.get('Seccomp'), '2');
    assert.equal(readFacts(await node.printed('fallback', 'open')).status.get('Seccomp'), '0');
  });
});
