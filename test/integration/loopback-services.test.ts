import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName, networkName } from '../../src/containerd/index.ts';
import { type Attempt, attempt } from '../connection-attempt.ts';
import { IsolatedNetwork, inNetworkOf, routeLoopbackVia } from '../isolated-network.ts';
import { KubelingNode } from '../kubeling-node.ts';

const signal = new AbortController().signal;
const hostPort = 18_080;
const servicePort = 18_081;
const answersWith = (text: string) =>
  `require('net').createServer((s) => s.end('${text}')).listen(${servicePort}, '127.0.0.1', () => console.log('listening'))`;

const served: Attempt = { answer: 'host port' };
const secret: Attempt = { answer: 'loopback service' };
const dropped: Attempt = { error: 'ETIMEDOUT' };

function run(inside: readonly string[], ...words: readonly string[]): string {
  const [file = '', ...args] = [...inside, ...words];
  return execFileSync(file, args, { encoding: 'utf8' });
}

describe('loopback services of a machine that runs kubeling up', { timeout: 400_000 }, () => {
  let network: IsolatedNetwork;
  let node: KubelingNode;
  let service: ChildProcess;
  let calls: string;
  let attacker: readonly string[];

  const filter = (...args: readonly string[]) => run(network.node, 'iptables', '-w', '5', ...args);
  const rulesOf = (dataDir: string) =>
    filter('-S', 'INPUT')
      .split('\n')
      .filter((line) => line.includes(networkName(dataDir)));
  const service127 = { host: '127.0.0.1', port: servicePort };

  async function pidOf(name: string): Promise<number> {
    await node.until(`the pod ${name} to run`, async () =>
      (await node.containersOf(name)).some(({ state }) => state === 'CONTAINER_RUNNING'),
    );
    const [container] = await node.containersOf(name);
    const { info } = await node.cri.containerStatus(
      { containerId: container?.id ?? '', verbose: true },
      signal,
    );
    return JSON.parse(info['info'] ?? '').pid;
  }

  async function put(name: string, command: readonly string[], ports: readonly object[] = []): Promise<void> {
    const containers = [{ name: 'main', image: busyboxImageName, command, ports }];
    const spec = { terminationGracePeriodSeconds: 0, containers };
    await node.put(`${name}.json`, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
  }

  before(async () => {
    network = new IsolatedNetwork();
    node = await KubelingNode.open(recordCalls, [], network.node);
    const [file = '', ...words] = network.node;
    service = spawn(file, [...words, process.execPath, '-e', answersWith('loopback service')]);
    await new Promise((resolve) => service.stdout?.once('data', resolve));
    await put(
      'web',
      ['nc', '-ll', '-p', '80', '-e', 'printf', 'host port'],
      [{ containerPort: 80, hostPort }],
    );
    await put('attacker', ['sleep', '100000']);
    await pidOf('web');
    const pid = await pidOf('attacker');
    attacker = inNetworkOf(pid);
    const gateway = /via (\S+) dev eth0/.exec(run(attacker, 'ip', 'route', 'show', 'default'))?.[1] ?? '';
    routeLoopbackVia(gateway, 'eth0', attacker);
  });

  after(async () => {
    try {
      service?.kill('SIGKILL');
      assert.deepEqual(await node?.leave(), []);
    } finally {
      network?.[Symbol.dispose]();
    }
  });

  /**
   * Puts a wrapper for iptables into the PATH that records all calls, including those of network
   * plugins.
   */
  async function recordCalls(dataDir: string): Promise<Readonly<Record<string, string>>> {
    const real = run([], 'sh', '-c', 'command -v iptables').trim();
    const bin = join(dataDir, 'bin');
    calls = join(dataDir, 'iptables-calls');
    await mkdir(bin);
    await writeFile(join(bin, 'iptables'), `#!/bin/sh\necho "$*" >> ${calls}\nexec ${real} "$@"\n`);
    await chmod(join(bin, 'iptables'), 0o755);
    return { PATH: `${bin}${delimiter}${process.env['PATH']}` };
  }

  it('CVE-2020-8558: loopback services are unreachable for a pod that routes loopback addresses to the node', async () => {
    assert.deepEqual(await attempt(service127, '', { through: network.node }), secret);
    assert.deepEqual(await attempt(service127, '', { through: attacker }), dropped);
  });

  it('loopback services are unreachable for a neighbour machine even with route_localnet on all interfaces', async () => {
    routeLoopbackVia(network.nodeAddress, 'net0', network.neighbour);
    run(network.node, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet');
    assert.deepEqual(await attempt(service127, '', { through: network.neighbour }), dropped);
    run(network.node, 'sh', '-c', 'echo 0 > /proc/sys/net/ipv4/conf/all/route_localnet');
  });

  it('loopback services are protected before the first sandbox has a network', async () => {
    const lines = (await readFile(calls, 'utf8')).split('\n');
    const rule = lines.findIndex((line) => /-I INPUT 1 .*127\.0\.0\.0\/8/.test(line));
    const plugin = lines.findIndex((line) => line.includes('POSTROUTING'));
    assert.ok(rule >= 0 && plugin > rule, lines.join('\n'));
  });

  it('host ports stay reachable from the machine, over loopback, from pods and from outside', async () => {
    const ways = [
      [network.node, '127.0.0.1'],
      [network.node, network.nodeAddress],
      [network.neighbour, network.nodeAddress],
      [attacker, network.nodeAddress],
    ] as const;
    for (const [through, host] of ways)
      assert.deepEqual(await attempt({ host, port: hostPort }, '', { through }), served, through.join(' '));
  });

  it('the packet filter rule is restored at the next start after it was removed', async () => {
    const [rule = ''] = rulesOf(node.dataDir);
    assert.match(rule, /^-A INPUT /);
    await node.end('SIGTERM');
    assert.deepEqual(rulesOf(node.dataDir), [rule]);
    filter('-F', 'INPUT');
    assert.deepEqual(await attempt(service127, '', { through: attacker }), secret);
    await node.start();
    assert.deepEqual(rulesOf(node.dataDir), [rule]);
    assert.deepEqual(await attempt(service127, '', { through: attacker }), dropped);
  });

  it('loopback services stay protected when kubeling down runs in another data directory of the machine', async () => {
    const other = await KubelingNode.open(undefined, ['--local-api=false'], network.node);
    const [before, left] = [rulesOf(other.dataDir), await other.leave()];
    assert.deepEqual([before.length, left, rulesOf(other.dataDir)], [1, [], []]);
    assert.equal(rulesOf(node.dataDir).length, 1);
    assert.deepEqual(await attempt(service127, '', { through: attacker }), dropped);
  });

  it('"kubeling down" removes its packet filter rule from the machine', async () => {
    await node.end('SIGTERM');
    assert.match(await node.command('down', '--grace=0s'), /^removed {4}1 loopback firewall rules$/m);
    assert.deepEqual(rulesOf(node.dataDir), []);
    assert.doesNotMatch(filter('-S'), /127\.0\.0\.0/);
  });
});
