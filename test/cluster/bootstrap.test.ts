import { certificatesByRequest } from './suites/certificates.ts';
import { realCluster } from './suites/place.ts';

certificatesByRequest(realCluster);
