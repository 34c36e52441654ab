// The choice of threads and processes: a list of processes, each with its threads, with what they weigh.

class ThreadChoice {
	constructor(model, button, dialog, onChoice) {
		this.model = model;
		this.button = button;
		this.dialog = dialog;
		this.onChoice = onChoice;
		this.chosen = new Uint8Array(model.groups.length).fill(1);
		this.type = 0;
		button.addEventListener('click', () => this.open());
		dialog.addEventListener('close', () => button.setAttribute('aria-expanded', 'false'));
		dialog.addEventListener('click', (event) => {
			if (event.target === dialog)
				dialog.close();
		});
		this.label();
	}

	// null: all.
	groups() {
		return this.chosen.every(Boolean) ? null : this.chosen;
	}

	label() {
		const nr = this.chosen.reduce((sum, is) => sum + is, 0);
		const all = this.chosen.length;
		this.button.textContent = nr === all ? `Threads: all ${all}` : `Threads: ${nr} of ${all}`;
		this.button.hidden = all < 2 || this.model.isDiff;
	}

	weights() {
		const sums = new Float64Array(this.model.groups.length);
		for (const rows of [this.model.samples, this.model.moments])
			for (let i = 0; i < rows.group.length; i++)
				sums[rows.group[i]] += rows.values[this.type][i];
		return sums;
	}

	processes() {
		const sums = this.weights();
		const processes = new Map();
		this.model.groups.forEach((group, index) => {
			const key = `${group.pid} ${group.process}`;
			if (!processes.has(key))
				processes.set(key, {name: group.process || 'no known process', pid: group.pid, sum: 0, threads: []});
			const process = processes.get(key);
			process.sum += sums[index];
			process.threads.push({index, group, sum: sums[index]});
		});
		const list = [...processes.values()].sort((a, b) => b.sum - a.sum);
		list.forEach((process) => process.threads.sort((a, b) => b.sum - a.sum));
		return list;
	}

	set(indexes, isChosen, isOnly) {
		if (isOnly)
			this.chosen.fill(0);
		for (const index of indexes)
			this.chosen[index] = isChosen ? 1 : 0;
		this.label();
		this.refresh();
		this.onChoice();
	}

	open() {
		this.fill();
		this.dialog.showModal();
		this.button.setAttribute('aria-expanded', 'true');
	}

	fill() {
		this.boxes = [];
		const processes = this.processes();
		const whole = processes.reduce((sum, process) => sum + process.sum, 0);
		const unit = this.model.types[this.type].unit;
		const line = (name, id, sum, indexes, isProcess) => {
			const box = make('input', {type: 'checkbox', change: () => this.set(indexes, box.checked)});
			this.boxes.push({box, indexes});
			const bar = make('span', {class: 'share', 'aria-hidden': 'true'});
			bar.style.width = `${whole ? 100 * sum / whole : 0}%`;
			return make('li', {class: isProcess ? 'process' : 'thread'},
				make('label', {}, box, make('span', {class: 'who'}, bar, make('span', {}, id ? `${name} ${id}` : name))),
				make('span', {class: 'number'}, formatValue(sum, unit)),
				make('button', {type: 'button', click: () => this.set(indexes, true, true),
					'aria-label': `Only ${name} ${id || ''}`}, 'only'));
		};
		const items = processes.flatMap((process) => [
			line(process.name, process.pid, process.sum, process.threads.map(({index}) => index), true),
			...process.threads.map(({index, group, sum}) => line(group.thread || (group.tid ? 'thread' : 'no known thread'), group.tid, sum, [index], false)),
		]);
		const every = this.model.groups.map((_, index) => index);
		this.dialog.replaceChildren(
			make('div', {class: 'dialog-head'}, make('h2', {}, 'Threads and processes'),
				make('button', {type: 'button', click: () => this.set(every, true)}, 'All'),
				make('button', {type: 'button', click: () => this.dialog.close()}, 'Close')),
			make('ul', {class: 'threads'}, ...items));
		this.refresh();
	}

	refresh() {
		for (const {box, indexes} of this.boxes || []) {
			const nr = indexes.reduce((sum, index) => sum + this.chosen[index], 0);
			box.checked = nr > 0;
			box.indeterminate = nr > 0 && nr < indexes.length;
		}
	}
}
