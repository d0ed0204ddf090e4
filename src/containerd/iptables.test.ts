import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KubelingError } from '../lib/index.ts';
import { removeRules, rulesOfNetwork, sandboxesWithRules, splitArguments } from './iptables.ts';
import type { Run } from './machine.ts';

const listing = String.raw`-P POSTROUTING ACCEPT
-N CNI-4e5676c42231fb97a6eb409a
-N CNI-DN-4e5676c42231fb97a6eb4
-N CNI-HOSTPORT-DNAT
-N CNI-99999999999999999999999a
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.1.0.2/32 -m comment --comment "name: \"klgother000\" id: \"a\"" -j CNI-99999999999999999999999a
-A POSTROUTING -s 10.2.0.2/32 -m comment --comment "name: \"klgours0000\" id: \"b\"" -j CNI-4e5676c42231fb97a6eb409a
-A CNI-4e5676c42231fb97a6eb409a -d 10.2.0.0/22 -m comment --comment "name: \"klgours0000\" id: \"b\"" -j ACCEPT
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"klgours0000\" id: \"b\"" -m multiport --dports 80 -j CNI-DN-4e5676c42231fb97a6eb4
-A CNI-DN-4e5676c42231fb97a6eb4 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.2.0.2:80
`;
const ourChains = ['CNI-4e5676c42231fb97a6eb409a', 'CNI-DN-4e5676c42231fb97a6eb4'];

describe('splitArguments', () => {
  it('keeps quoted words together and removes backslashes', () => {
    assert.deepEqual(splitArguments(String.raw`-A X --comment "a \"b\" \\ c" -j Y`), [
      '-A',
      'X',
      '--comment',
      'a "b" \\ c',
      '-j',
      'Y',
    ]);
  });
});

describe('sandboxesWithRules', () => {
  it('returns each sandbox of the given network once', () => {
    assert.deepEqual(sandboxesWithRules(listing, 'klgours0000'), ['b']);
    assert.deepEqual(sandboxesWithRules(listing, 'klgnobody00'), []);
  });
});

describe('rulesOfNetwork', () => {
  it('returns only the rules of the selected sandboxes', () => {
    assert.deepEqual(
      rulesOfNetwork(listing, 'klgours0000', (id) => id !== 'b'),
      { rules: [], chains: [] },
    );
  });

  it('finds only the rules and chains of the given network', () => {
    const { rules, chains } = rulesOfNetwork(listing, 'klgours0000');
    assert.deepEqual(chains, ourChains);
    assert.deepEqual(rules, [
      [
        'POSTROUTING',
        '-s',
        '10.2.0.2/32',
        '-m',
        'comment',
        '--comment',
        'name: "klgours0000" id: "b"',
        '-j',
        ourChains[0],
      ],
      [
        'CNI-HOSTPORT-DNAT',
        '-p',
        'tcp',
        '-m',
        'comment',
        '--comment',
        'dnat name: "klgours0000" id: "b"',
        '-m',
        'multiport',
        '--dports',
        '80',
        '-j',
        ourChains[1],
      ],
    ]);
  });

  it('finds an unreferenced chain left by an interrupted plugin', () => {
    const half = String.raw`-N CNI-4e5676c42231fb97a6eb409a
-A CNI-4e5676c42231fb97a6eb409a -d 10.2.0.0/22 -m comment --comment "name: \"klgours0000\" id: \"b\"" -j ACCEPT
`;
    assert.deepEqual(rulesOfNetwork(half, 'klgours0000'), {
      rules: [],
      chains: ['CNI-4e5676c42231fb97a6eb409a'],
    });
  });

  it('distinguishes networks with a common prefix', () => {
    assert.deepEqual(rulesOfNetwork(listing, 'klgours'), { rules: [], chains: [] });
  });
});

describe('removeRules', () => {
  const signal = new AbortController().signal;
  const answer = (stdout: string) => ({
    end: { kind: 'exited', code: 0 } as const,
    stdout,
    stderr: '',
    droppedBytes: 0,
  });

  it('deletes rules before the chains they jump to', async () => {
    const calls: string[] = [];
    const run: Run = async (_, args) => {
      calls.push(args.slice(4).slice(0, 2).join(' '));
      return answer(args.includes('-S') ? listing : '');
    };
    const { problems } = await removeRules('iptables', 'klgours0000', run, signal);
    assert.deepEqual(problems, []);
    assert.deepEqual(calls, [
      '-S',
      '-D POSTROUTING',
      '-D CNI-HOSTPORT-DNAT',
      ...ourChains.flatMap((chain) => [`-F ${chain}`, `-X ${chain}`]),
    ]);
  });

  it('continues after a failed deletion and reports it', async () => {
    const run: Run = async (_, args) => {
      if (args.includes('-D')) throw new KubelingError('COMMAND_FAILED', 'the xtables lock is held');
      return answer(args.includes('-S') ? listing : '');
    };
    const { removed, problems } = await removeRules('iptables', 'klgours0000', run, signal);
    assert.equal(removed.length, 4);
    assert.deepEqual(problems, ['the xtables lock is held', 'the xtables lock is held']);
  });
});
