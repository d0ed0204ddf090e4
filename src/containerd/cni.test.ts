import assert from 'node:assert/strict';
import { it } from 'node:test';
import { cniConflist } from './cni.ts';

const network = { network: 'klg12345678', subnet: '10.128.4.0/22', ipamDir: '/data/ipam' } as const;

it('configures a masqueraded bridge with its own subnet and host ports', () => {
  assert.deepEqual(JSON.parse(cniConflist({ ...network, rules: 'unspecified' })), {
    cniVersion: '0.4.0',
    name: 'klg12345678',
    plugins: [
      {
        type: 'bridge',
        bridge: 'klg12345678',
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: '/data/ipam',
          ranges: [[{ subnet: '10.128.4.0/22' }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  });
});

it('configures newer CNI plugins to use iptables when teardown removes iptables rules', () => {
  const { plugins } = JSON.parse(cniConflist({ ...network, rules: 'iptables' }));
  assert.equal(plugins[0].ipMasqBackend, 'iptables');
  assert.equal(plugins[1].backend, 'iptables');
});
