import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkSupported, parseContainerdVersion } from './version.ts';

describe('parseContainerdVersion', () => {
  const outputs: readonly [string, number, number, string][] = [
    ['containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n', 1, 6, '1.6.20~ds1'],
    [
      'containerd github.com/containerd/containerd v1.7.13 7c3aca7a610df76212171d200ca3811ff6096eb8\n',
      1,
      7,
      '1.7.13',
    ],
    ['containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da\n', 1, 7, '1.7.27'],
    [
      'containerd github.com/containerd/containerd/v2 v2.0.4 1a43cb6a1035441f9aca8f5666a9b3ef9e70ab20\n',
      2,
      0,
      '2.0.4',
    ],
    ['containerd github.com/containerd/containerd/v2 2.4.2+unknown \n', 2, 4, '2.4.2+unknown'],
    ['containerd github.com/containerd/containerd/v2 v2.1.0-rc.1 abc\n', 2, 1, '2.1.0-rc.1'],
  ];
  for (const [output, major, minor, text] of outputs) {
    it(`parses the containerd version in ${text}`, () =>
      assert.deepEqual(parseContainerdVersion(output), { major, minor, text }));
  }

  it('throws for a version text it cannot parse', () => {
    assert.throws(() => parseContainerdVersion('something else\n'), {
      code: 'CONTAINERD_VERSION',
      message: /it printed "something else"/,
    });
  });
});

describe('checkSupported', () => {
  const version = (major: number, minor: number) => ({ major, minor, text: `${major}.${minor}.0` });

  it('accepts containerd 1.6, 1.7 and every 2.x', () => {
    for (const [major, minor] of [
      [1, 6],
      [1, 7],
      [2, 0],
      [2, 9],
    ] as const)
      checkSupported(version(major, minor));
  });

  it('rejects older and unknown newer versions of containerd', () => {
    for (const [major, minor] of [
      [1, 5],
      [0, 2],
      [3, 0],
    ] as const) {
      assert.throws(() => checkSupported(version(major, minor)), { code: 'CONTAINERD_VERSION' });
    }
  });
});
