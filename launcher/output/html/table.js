// The table of functions: sorted by a click on a column's title, limited by the search. Only the rows in sight are elements,
// so that tens of thousands cost no more than thirty.

const TABLE_ROW = 26;

class FunctionTable {
	// columns: {id, title, value(frame), text(frame), isText, width, bar(frame)}
	constructor(container, look, onPick) {
		this.container = container;
		this.look = look;
		this.onPick = onPick;
		this.sort = {id: '', ascending: false};
		this.selected = 0;
		this.rows = [];
		this.head = make('div', {class: 'tr head', role: 'row'});
		this.body = make('div', {class: 'body', role: 'presentation'});
		this.spacer = make('div', {class: 'spacer', role: 'presentation'}, this.body);
		// The titles scroll sideways with the rows, and stay above them.
		this.scroller = make('div', {class: 'scroller', role: 'presentation', scroll: () => this.render()}, this.head, this.spacer);
		container.append(this.scroller);
		container.addEventListener('keydown', (event) => this.key(event));
		new ResizeObserver(() => this.render()).observe(container);
	}

	setColumns(columns, first) {
		this.columns = columns;
		if (!columns.some((column) => column.id === this.sort.id))
			this.sort = {id: first, ascending: false};
		this.container.style.setProperty('--columns', columns.map((column) => column.width).join(' '));
	}

	setRows(frames) {
		this.rows = frames;
		this.order();
	}

	order() {
		const column = this.columns.find(({id}) => id === this.sort.id);
		const sign = this.sort.ascending ? 1 : -1;
		const key = new Map(this.rows.map((frame) => [frame, column.value(frame)]));
		if (column.isText)
			this.rows.sort((a, b) => sign * (key.get(a) < key.get(b) ? -1 : key.get(a) > key.get(b) ? 1 : 0));
		else
			this.rows.sort((a, b) => sign * (key.get(a) - key.get(b)) || a - b);
		this.selected = Math.min(this.selected, Math.max(this.rows.length - 1, 0));
		this.renderHead();
		this.render();
	}

	sortBy(id) {
		const column = this.columns.find((c) => c.id === id);
		this.sort = {id, ascending: this.sort.id === id ? !this.sort.ascending : Boolean(column.isText)};
		this.order();
	}

	renderHead() {
		const focused = document.activeElement && document.activeElement.dataset.column;
		this.head.replaceChildren(...this.columns.map((column) => {
			const isSorted = column.id === this.sort.id;
			const arrow = isSorted ? (this.sort.ascending ? ' ▲' : ' ▼') : '';
			const button = make('button', {type: 'button', 'data-column': column.id, click: () => this.sortBy(column.id)},
				column.title + arrow);
			return make('div', {class: column.isText ? 'td' : 'td number', role: 'columnheader',
				'aria-sort': isSorted ? (this.sort.ascending ? 'ascending' : 'descending') : 'none'}, button);
		}));
		if (focused)
			this.head.querySelector(`[data-column="${focused}"]`)?.focus();
	}

	render(all) {
		const {scroller} = this;
		const first = all ? 0 : Math.max(0, Math.floor(scroller.scrollTop / TABLE_ROW) - 4);
		const count = all || Math.ceil((scroller.clientHeight || 400) / TABLE_ROW) + 8;
		const last = Math.min(this.rows.length, first + count);
		this.spacer.style.height = all ? 'auto' : `${this.rows.length * TABLE_ROW}px`;
		this.body.style.transform = all ? 'none' : `translateY(${first * TABLE_ROW}px)`;
		const rows = [];
		for (let i = first; i < last; i++)
			rows.push(this.renderRow(i));
		if (!this.rows.length)
			rows.push(make('p', {class: 'empty'}, 'No function matches.'));
		this.body.replaceChildren(...rows);
		this.container.setAttribute('aria-rowcount', String(this.rows.length + 1));
		this.container.setAttribute('aria-activedescendant', `row-${this.selected}`);
	}

	renderRow(index) {
		const frame = this.rows[index];
		const row = make('div', {
			class: index === this.selected ? 'tr selected' : 'tr', role: 'row', id: `row-${index}`,
			'aria-rowindex': String(index + 2), 'aria-selected': String(index === this.selected),
			click: () => this.select(index), dblclick: () => this.onPick(frame),
		});
		for (const column of this.columns) {
			const cell = make('div', {class: column.isText ? 'td' : 'td number', role: 'gridcell'});
			if (column.bar) {
				const bar = make('span', {class: 'share', 'aria-hidden': 'true'});
				bar.style.width = `${Math.max(0, Math.min(100, column.bar(frame) * 100))}%`;
				cell.append(bar);
			}
			if (column.id === 'name') {
				cell.append(make('button', {type: 'button', class: 'link', tabindex: '-1', title: column.text(frame),
					click: () => this.onPick(frame)}, column.text(frame)));
			} else {
				cell.append(make('span', {title: column.title}, column.text(frame)));
			}
			row.append(cell);
		}
		return row;
	}

	select(index) {
		this.selected = Math.max(0, Math.min(this.rows.length - 1, index));
		const top = this.selected * TABLE_ROW;
		const room = this.scroller.clientHeight - this.head.offsetHeight;
		if (top < this.scroller.scrollTop)
			this.scroller.scrollTop = top;
		else if (top + TABLE_ROW > this.scroller.scrollTop + room)
			this.scroller.scrollTop = top + TABLE_ROW - room;
		this.render();
		if (this.rows.length)
			this.look.hoverFrame(this.rows[this.selected]);
	}

	key(event) {
		if (event.target.dataset && event.target.dataset.column)
			return;
		const page = Math.max(1, Math.floor(this.scroller.clientHeight / TABLE_ROW) - 1);
		const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length};
		if (event.key in steps)
			this.select(this.selected + steps[event.key]);
		else if (event.key === 'Enter' && this.rows.length)
			this.onPick(this.rows[this.selected]);
		else
			return;
		event.preventDefault();
	}
}
