import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { PathTree } from './path-tree.ts';

describe('a tree of paths', () => {
  it('returns the content of a directory at any depth', () => {
    const tree = new PathTree();
    for (const path of ['/a/b/c', '/a/b/d', '/a/e']) tree.add(path);
    assert.deepEqual(tree.names('/a').toSorted(), ['b', 'e']);
    assert.deepEqual(tree.names('/a/b').toSorted(), ['c', 'd']);
    assert.deepEqual(tree.names(''), ['a']);
    assert.equal(tree.isEmpty('/a/e'), true);
    tree.delete('/a/b/c');
    tree.delete('/a/b/d');
    assert.deepEqual(tree.names('/a'), ['e']);
  });

  it('returns the same content of directories as a search through all paths', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.uniqueArray(path.map((parts) => `/${parts.join('/')}`)), fc.nat(), (paths, kept) => {
        const tree = new PathTree();
        for (const one of paths) tree.add(one);
        const left = paths.slice(0, kept % (paths.length + 1));
        for (const one of paths.slice(left.length)) tree.delete(one);
        for (const directory of ['', '/a', '/a/b', '/c/a/b']) {
          const inside = left.filter((each) => each.startsWith(`${directory}/`));
          const names = new Set(inside.map((each) => each.slice(directory.length + 1).split('/')[0] ?? ''));
          assert.deepEqual(tree.names(directory).toSorted(), [...names].toSorted());
          assert.equal(tree.isEmpty(directory), names.size === 0);
        }
      }),
    );
  });
});
