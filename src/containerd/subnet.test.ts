import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  chooseSubnet,
  formatSubnet,
  overlaps,
  parseFibTrie,
  parseRouteTable,
  parseSubnet,
} from './subnet.ts';

const subnets = (...texts: string[]) => texts.map(parseSubnet);

describe('parseSubnet', () => {
  it('parses the output of formatSubnet', () => {
    for (const text of ['0.0.0.0/0', '10.128.4.0/22', '255.255.255.255/32', '192.168.0.0/16']) {
      assert.equal(formatSubnet(parseSubnet(text)), text);
    }
  });

  for (const text of [
    '10.0.0.0',
    '10.0.0.1/24',
    '10.0.0.0/33',
    '256.0.0.0/8',
    '10.0.0.0/-1',
    'a/8',
    '',
    '1.2.3/8',
    '10.0.0.0/8/9',
  ]) {
    it(`rejects the subnet ${JSON.stringify(text)}`, () => {
      assert.throws(() => parseSubnet(text), { code: 'CONTAINERD_SUBNET' });
    });
  }
});

describe('overlaps (subnets)', () => {
  it('returns true only if one subnet contains the other', () => {
    const [wide, inside, beside] = subnets('10.128.0.0/9', '10.251.200.0/22', '10.0.0.0/9');
    assert(wide && inside && beside);
    assert(overlaps(wide, inside) && overlaps(inside, wide) && overlaps(wide, wide));
    assert(!overlaps(beside, inside) && !overlaps(wide, beside));
  });
});

const fibTrie = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.244.0.0/22 2 0 2
        |-- 10.244.0.0
           /22 link UNICAST
           /24 link UNICAST
Local:
  +-- 127.0.0.0/8 2 0 2
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.0.2.2
        /32 host LOCAL
`;

describe('parseFibTrie', () => {
  it('finds every route and address, including several for one address', () => {
    assert.deepEqual(parseFibTrie(fibTrie).map(formatSubnet), [
      '0.0.0.0/0',
      '10.244.0.0/22',
      '10.244.0.0/24',
      '127.0.0.1/32',
      '192.0.2.2/32',
    ]);
  });
});

describe('parseRouteTable', () => {
  it('reads addresses in host byte order', () => {
    const text = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
klgf6cc1ef2\t00C8FB0A\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0
`;
    const routes = parseRouteTable(text);
    assert.deepEqual(
      routes.map((route) => `${route.device} ${formatSubnet(route)}`),
      ['eth0 0.0.0.0/0', 'klgf6cc1ef2 10.251.200.0/22'],
    );
  });
});

describe('chooseSubnet', () => {
  const hash = 'f6cc1ef2';

  it('chooses a subnet that depends only on the hash if no network is in use', () => {
    assert.equal(formatSubnet(chooseSubnet(hash, [])), '10.251.200.0/22');
    assert.equal(formatSubnet(chooseSubnet('00000000', [])), '10.128.0.0/22');
    assert.equal(formatSubnet(chooseSubnet('00001fff', [])), '10.255.252.0/22');
  });

  it('chooses the next free subnet, and continues at the start of the range after its end', () => {
    assert.equal(formatSubnet(chooseSubnet(hash, subnets('10.251.201.7/32'))), '10.251.204.0/22');
    assert.equal(formatSubnet(chooseSubnet('00001fff', subnets('10.255.254.0/24'))), '10.128.0.0/22');
  });

  it('ignores default routes, including those split into two halves', () => {
    const taken = subnets('0.0.0.0/0', '0.0.0.0/1', '128.0.0.0/1');
    assert.equal(formatSubnet(chooseSubnet(hash, taken)), '10.251.200.0/22');
  });

  it('uses another private range when the first one is occupied', () => {
    assert.match(formatSubnet(chooseSubnet(hash, subnets('10.0.0.0/8'))), /^172\.(1[6-9]|2\d|3[01])\./);
  });

  it('fails with a message when all ranges are occupied', () => {
    const taken = subnets('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10');
    assert.throws(() => chooseSubnet(hash, taken), {
      code: 'CONTAINERD_SUBNET',
      message: /tried 10\.128\.0\.0\/9/,
    });
  });

  it('never chooses a subnet that overlaps a network in use', () => {
    const taken = fc.array(fc.tuple(fc.nat(2 ** 23 - 1), fc.integer({ min: 11, max: 32 })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(fc.nat(2 ** 32 - 1), taken, (seed, list) => {
        const used = list.map(([offset, prefix]) => {
          const size = 2 ** (32 - prefix);
          return { base: 0x0a800000 + Math.floor(offset / size) * size, prefix };
        });
        const chosen = chooseSubnet(seed.toString(16).padStart(8, '0'), used);
        assert(!used.some((subnet) => overlaps(subnet, chosen)));
        assert.equal(chosen.prefix, 22);
      }),
    );
  });
});
