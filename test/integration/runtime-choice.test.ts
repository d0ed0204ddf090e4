import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { BootedMachine, type MachineProcess } from '../booted-machine.ts';
import { eventually } from '../kubeling-node.ts';
import { withoutKubectl } from '../local-api/tour-commands.ts';

const image = 'localhost/kubeling/busybox:1';
const usualSocket = '/run/containerd/containerd.sock';

function manifestOf(name: string): string {
  const containers = [{ name: 'main', image, command: ['sleep', '100000'] }];
  const spec = { terminationGracePeriodSeconds: 0, containers };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
}

/** A fake runtime that hangs: it accepts connections and never responds. */
const silentServer = `require('node:net').createServer(() => {}).listen(process.argv[1], () => console.log('listening'))`;

describe('choice of the container runtime by kubeling up', { timeout: 600_000 }, () => {
  let machine: BootedMachine;

  beforeEach(async () => {
    machine = await BootedMachine.open();
    await machine.boot();
  });
  afterEach(() => machine[Symbol.asyncDispose]());

  /**
   * A containerd as Debian installs it: at the default socket and without a network configuration.
   */
  async function startContainerdWithoutNetwork(name: string): Promise<void> {
    const dir = join(machine.scratch, name);
    await mkdir(join(dir, 'cni'), { recursive: true });
    const lines = [
      'version = 2',
      `root = "${dir}/root"`,
      'state = "/run/containerd"',
      `[grpc]\naddress = "${usualSocket}"`,
      `[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "${dir}/cni"`,
      '[plugins."io.containerd.grpc.v1.cri"]\nrestrict_oom_score_adj = true',
    ];
    await writeFile(join(dir, 'config.toml'), `${lines.join('\n')}\n`);
    await machine.start('containerd', '--config', join(dir, 'config.toml')).says(/successfully booted/);
  }

  function startUp(dataDir: string, ...flags: readonly string[]): MachineProcess {
    return machine.startKubeling('up', '--data-dir', dataDir, ...flags);
  }

  async function isRunning(dataDir: string, pod: string): Promise<void> {
    await eventually(`the pod ${pod} to run`, async () => {
      const words = ['exec', pod, '--data-dir', dataDir, '--', 'echo', 'alive'];
      const output = await machine.runKubeling(...words).catch((error: Error) => error.message);
      return output === 'alive\n' ? true : undefined;
    });
  }

  it('the private containerd is used again after a power loss, and its pods run again', async (t) => {
    const dataDir = machine.dataDirectory('home');
    await startUp(dataDir).says(/^ready/m);
    await writeFile(join(dataDir, 'manifests', 'static.json'), manifestOf('static'));
    const kubectl = withoutKubectl();
    if (kubectl !== false) t.diagnostic(`no pod of the API: ${kubectl}`);
    else {
      await writeFile(join(machine.scratch, 'pod.json'), manifestOf('of-api'));
      const file = join(machine.scratch, 'pod.json');
      await machine.run('kubectl', '--kubeconfig', join(dataDir, 'kubeconfig'), 'apply', '-f', file);
    }
    const pods = kubectl === false ? ['static', 'of-api'] : ['static'];
    for (const pod of pods) await isRunning(dataDir, pod);

    await machine.losePower();
    await machine.boot();
    await startContainerdWithoutNetwork('debian');
    const up = startUp(dataDir);
    await up.says(/^ready/m);
    assert.match(
      up.output(),
      /^runtime {5}the runtime at \/run\/containerd\/containerd\.sock is not used, because/m,
    );
    assert.match(up.output(), /add --runtime-endpoint unix:\/\/\/run\/containerd\/containerd\.sock$/m);
    assert.match(up.output(), /^runtime {5}containerd \S+, private, started/m);
    for (const pod of pods) await isRunning(dataDir, pod);
    const containers = await machine.run('ctr', '-a', usualSocket, '-n', 'k8s.io', 'containers', 'ls', '-q');
    assert.equal(containers, '', 'the other runtime was not tried');
    await machine.runKubeling('down', '--all', '--grace=0s', '--data-dir', dataDir);
  });

  it('a private containerd is started when the runtimes found at the first start cannot run a pod', async () => {
    await startContainerdWithoutNetwork('debian');
    await machine.run('mkdir', '-p', '/run/crio');
    await machine.start(process.execPath, '-e', silentServer, '/run/crio/crio.sock').says(/listening/);
    const dataDir = machine.dataDirectory('home');
    const up = startUp(dataDir);
    await up.says(/^ready/m);
    const refused =
      /^runtime {5}the runtime found at (\S+) is not used, because it cannot run a pod: (.*)$/gm;
    const why = [...up.output().matchAll(refused)].map(([, socket, reason]) => [socket, reason]);
    assert.deepEqual(
      why.map(([socket]) => socket),
      [usualSocket, '/run/crio/crio.sock'],
    );
    assert.match(why[0]?.[1] ?? '', /NetworkReady is false: .*cni plugin not initialized/);
    assert.match(why[1]?.[1] ?? '', /within 10000 ms/);
    assert.match(up.output(), /repair it and add --runtime-endpoint unix:\/\/\/run\/crio\/crio\.sock$/m);
    assert.match(up.output(), /^runtime {5}containerd \S+, private, started/m);
    await machine.runKubeling('down', '--all', '--grace=0s', '--data-dir', dataDir);
  });

  it("the machine's runtime is used again when it has kubeling's pods, and kubeling waits while it is unavailable", async () => {
    const other = machine.dataDirectory('other');
    const first = startUp(other, '--local-api=false');
    await first.says(/^ready/m);
    const endpoint = `unix://${join(other, 'containerd', 'containerd.sock')}`;
    const dataDir = machine.dataDirectory('home');
    const requested = startUp(dataDir, '--local-api=false', '--runtime-endpoint', endpoint);
    await requested.says(/^ready/m);
    await machine.losePower();

    await machine.boot();
    const again = startUp(dataDir, '--local-api=false');
    await again.says(/^runtime {5}waiting for the runtime at /m);
    await startUp(other, '--local-api=false').says(/^ready/m);
    await again.says(/^ready/m);
    assert.match(again.output(), /^runtime {5}containerd \S+, used before at unix:/m);
    await machine.runKubeling('down', '--all', '--grace=0s', '--data-dir', dataDir);
    await machine.runKubeling('down', '--all', '--grace=0s', '--data-dir', other);
  });
});
