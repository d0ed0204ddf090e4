import { lostNode } from './suites/lost-node.ts';
import { realCluster } from './suites/place.ts';

lostNode(realCluster);
