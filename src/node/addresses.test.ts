import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeWorld } from '../../test/fakes/node-world.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { NodeAddress } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import {
  type AddressFacts,
  canonicalAddressIp,
  hostIps,
  nodeAddresses,
  PolledAddresses,
  providedIps,
  readDefaultRoutes,
  routedAddress,
  unusableAddressReason,
} from './addresses.ts';
import { NodeController } from './node-controller.ts';

const plain = { name: 'n1', hostname: 'n1', ips: [] as readonly string[], cloudProvider: '' } as const;
const local = [
  { interface: 'lo', address: '127.0.0.1' },
  { interface: 'eth0', address: '10.0.0.5' },
  { interface: 'eth0', address: 'fd00:0::5' },
  { interface: 'eth1', address: '10.1.0.5' },
  { interface: 'eth1', address: 'fe80::1%eth1' },
];
const facts: AddressFacts = { local, lookedUp: [], routes: { ipv4: ['eth0'], ipv6: ['eth0'] } };
const show = (addresses: readonly { type: string; address: string }[]) =>
  addresses.map(({ type, address }) => `${type}=${address}`);

test("uses the address of the default route's interface by default, IPv4 first", () => {
  assert.deepEqual(show(nodeAddresses(plain, facts, [])), ['InternalIP=10.0.0.5', 'Hostname=n1']);
});

test('prefers IPv6 for :: and IPv4 for 0.0.0.0', () => {
  const first = (ip: string) => nodeAddresses({ ...plain, ips: [ip] }, facts, [])[0]?.address;
  assert.equal(first('::'), 'fd00::5');
  assert.equal(first('0.0.0.0'), '10.0.0.5');
});

test('prefers a configured address, or a configured pair of addresses, to all others', () => {
  const given = (...ips: string[]) => show(nodeAddresses({ ...plain, ips }, facts, []));
  assert.deepEqual(given('10.1.0.5'), ['InternalIP=10.1.0.5', 'Hostname=n1']);
  assert.deepEqual(given('fd00::0005', '10.1.0.5'), [
    'InternalIP=fd00::5',
    'InternalIP=10.1.0.5',
    'Hostname=n1',
  ]);
});

test('uses the host name as the node address when the host name is an IP address', () => {
  const named = { ...plain, hostname: '10.9.9.9' };
  assert.deepEqual(show(nodeAddresses(named, facts, [])), ['InternalIP=10.9.9.9', 'Hostname=10.9.9.9']);
});

test('uses an address of the machine to which the host name resolves, of the preferred family if possible', () => {
  const looked = (lookedUp: readonly string[], ips: readonly string[] = []) =>
    nodeAddresses({ ...plain, ips }, { ...facts, lookedUp }, [])[0]?.address;
  assert.equal(looked(['8.8.8.8', '127.0.0.1', 'fd00::5', '10.1.0.5']), '10.1.0.5');
  assert.equal(looked(['10.1.0.5', 'fd00::5'], ['::']), 'fd00::5');
  assert.equal(looked(['fd00::5']), 'fd00::5');
  assert.equal(looked(['8.8.8.8']), '10.0.0.5');
});

test('rejects a configured address that is unreachable or not on the machine, and quotes it', () => {
  for (const [ip, why] of [
    ['127.0.0.1', /127\.0\.0\.1 .*loopback/],
    ['224.0.0.1', /multicast/],
    ['ff02::1', /multicast/],
    ['169.254.1.1', /link-local/],
    ['fe80::1', /link-local/],
    ['10.2.2.2', /10\.2\.2\.2 .*no network interface/],
  ] as const) {
    const use = () => nodeAddresses({ ...plain, ips: [ip] }, facts, []);
    assert.throws(use, { code: 'NODE_ADDRESS', message: why });
  }
});

test('recommends --node-ip when no address is found', () => {
  const nowhere = { ...facts, routes: { ipv4: [], ipv6: [] } };
  assert.throws(() => nodeAddresses(plain, nowhere, []), { code: 'NODE_ADDRESS', message: /--node-ip$/ });
});

test('with an external cloud provider, keeps existing addresses; without existing addresses uses the configured ones, and the host name', () => {
  const cloud = { ...plain, cloudProvider: 'external' } as const;
  const set = [{ type: 'ExternalIP', address: '1.2.3.4' }];
  assert.deepEqual(nodeAddresses(cloud, facts, set), set);
  assert.deepEqual(show(nodeAddresses(cloud, facts, [])), ['Hostname=n1']);
  const given = { ...cloud, ips: ['10.1.0.5'] };
  assert.deepEqual(show(nodeAddresses(given, facts, [])), ['InternalIP=10.1.0.5', 'Hostname=n1']);
  const anyV6 = { ...cloud, ips: ['::'] };
  assert.deepEqual(show(nodeAddresses(anyV6, facts, [])), ['InternalIP=fd00::5', 'Hostname=n1']);
});

test('sets the provided-node-ip annotation only with a cloud provider and configured addresses', () => {
  const cloud = { ...plain, cloudProvider: 'external' } as const;
  assert.equal(providedIps(cloud), undefined);
  assert.equal(providedIps({ ...cloud, ips: ['0.0.0.0'] }), undefined);
  assert.equal(providedIps({ ...plain, ips: ['10.1.0.5'] }), undefined);
  assert.equal(providedIps({ ...cloud, ips: ['10.1.0.5', 'fd00::5'] }), '10.1.0.5,fd00::5');
});

test('puts a configured address before the addresses of the provider, and drops other provider addresses of the same type', () => {
  const provided = [
    { type: 'InternalIP', address: '10.0.0.5' },
    { type: 'InternalIP', address: '10.1.0.5' },
    { type: 'ExternalIP', address: '5.5.5.5' },
    { type: 'InternalDNS', address: 'n1.cloud' },
  ];
  assert.deepEqual(show(nodeAddresses(plain, { ...facts, provided }, [])), [
    'InternalIP=10.0.0.5',
    'InternalIP=10.1.0.5',
    'ExternalIP=5.5.5.5',
    'InternalDNS=n1.cloud',
    'Hostname=n1',
  ]);
  const chosen = { ...plain, ips: ['10.1.0.5'] };
  assert.deepEqual(show(nodeAddresses(chosen, { ...facts, provided }, [])), [
    'InternalIP=10.1.0.5',
    'ExternalIP=5.5.5.5',
    'InternalDNS=n1.cloud',
    'Hostname=n1',
  ]);
  const unknown = { ...plain, ips: ['fd00::5'] };
  assert.throws(
    () => nodeAddresses(unknown, { ...facts, provided }, []),
    /address provider does not list it/,
  );
});

const ipv4Table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
wlan0	00000000	0101A8C0	0003	0	0	600	00000000	0	0	0
eth0	00000000	010200C0	0003	0	0	100	00000000	0	0	0
down0	00000000	010200C0	0002	0	0	1	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
`;
const zeros = '0'.repeat(32);
const ipv6Table = `fd000000000000000000000000000000 40 ${zeros} 00 ${zeros} 00000100 00000001 00000000 00000001     eth0
${zeros} 00 ${zeros} 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0
${zeros} 00 ${zeros} 00 ${zeros} ffffffff 00000001 00000000 00200200       lo
`;

test("reads default routes from the kernel's tables, the lowest metric first", () => {
  assert.deepEqual(readDefaultRoutes(ipv4Table, ipv6Table), { ipv4: ['eth0', 'wlan0'], ipv6: ['eth0'] });
  assert.deepEqual(readDefaultRoutes('', ''), { ipv4: [], ipv6: [] });
});

test('uses an address of the loopback interface when the interface of the default route has none', () => {
  const addresses = [
    { interface: 'lo', address: '127.0.0.1' },
    { interface: 'lo', address: '10.255.0.1' },
    { interface: 'bgp0', address: 'fe80::2' },
  ];
  assert.equal(routedAddress({ ipv4: ['bgp0'], ipv6: [] }, addresses, 'ipv4'), '10.255.0.1');
  assert.equal(routedAddress({ ipv4: [], ipv6: ['bgp0'] }, addresses, 'ipv4'), undefined);
});

test('normalizes the spelling of IP addresses', () => {
  assert.equal(canonicalAddressIp('FD00:0:0::1'), 'fd00::1');
  assert.equal(canonicalAddressIp('fe80::1%eth0'), 'fe80::1');
  assert.equal(canonicalAddressIp('10.0.0.300'), undefined);
  assert.equal(unusableAddressReason('10.0.0.1'), undefined);
});

const node = (...addresses: readonly (readonly [string, string])[]) => ({
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});

test('puts internal addresses before external ones, one of each family', () => {
  assert.deepEqual(hostIps({}), []);
  assert.deepEqual(hostIps(node(['Hostname', 'n1'])), []);
  assert.deepEqual(hostIps(node(['ExternalIP', '5.5.5.5'], ['InternalIP', '10.0.0.1'])), ['10.0.0.1']);
  const dual = node(['InternalIP', 'fd00::1'], ['InternalIP', 'fd00::2'], ['ExternalIP', '5.5.5.5']);
  assert.deepEqual(hostIps(dual), ['fd00::1', '5.5.5.5']);
});

type Answer = () => Promise<readonly NodeAddress[]>;
const at = (address: string): NodeAddress => ({ type: 'InternalIP', address });

function polledBy(first: Answer) {
  const script = { answer: first, asked: 0, changes: 0 };
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const polled = new PolledAddresses({
    provider: {
      addresses: () => {
        script.asked++;
        return script.answer();
      },
    },
    nodeName: 'n1',
    clock,
    random: seededRandom(1),
    logger: logs.logger,
    changed: () => void script.changes++,
  });
  const controller = new AbortController();
  const ended = polled.run(controller.signal).catch(() => {});
  const stop = async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(clock.pendingTimers, 0);
  };
  return { script, clock, logs, polled, stop };
}

test('keeps the last good result of the address provider, and notifies of changes only', async () => {
  const { script, clock, logs, polled, stop } = polledBy(async () => [at('10.0.0.1')]);
  await clock.advance(11_000);
  assert.deepEqual([polled.latest, script.asked, script.changes], [[at('10.0.0.1')], 2, 1]);
  script.answer = () => Promise.reject(new Error('no quota left'));
  await clock.advance(60_000);
  assert.deepEqual(polled.latest, [at('10.0.0.1')]);
  assert.equal(polled.problem, 'no quota left');
  assert.equal(logs.records.size, 1);
  script.answer = async () => [at('10.0.0.2')];
  await clock.advance(11_000);
  assert.deepEqual([polled.latest, polled.problem, script.changes], [[at('10.0.0.2')], undefined, 2]);
  await stop();
});

test('aborts and retries a call of the address provider that hangs, and rejects an empty result', async () => {
  const { script, clock, polled, stop } = polledBy(() => new Promise(() => {}));
  await clock.advance(5_000);
  assert.match(polled.problem ?? '', /within 5000 ms/);
  script.answer = async () => [];
  await clock.advance(11_000);
  assert.equal(polled.latest, undefined);
  assert.match(polled.problem ?? '', /returned no address/);
  await stop();
});

test('publishes the addresses of the address provider as soon as it returns them', async () => {
  const environment = new NodeWorld();
  let addresses = [at('10.7.0.1')];
  const keeper = new NodeController({
    ...environment.deps(),
    addresses: { addresses: async () => addresses },
  });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).catch(() => {});
  await environment.clock.advance(1_000);
  const told = () => environment.api.node()?.status?.addresses?.map(({ address }) => address);
  assert.deepEqual(told(), ['10.7.0.1', 'n1']);
  addresses = [at('10.7.0.2')];
  await environment.clock.advance(11_000);
  assert.deepEqual(told(), ['10.7.0.2', 'n1']);
  controller.abort(new Error('stopped'));
  await ended;
});
